"""How every numba kernel is compiled and kept, in one place."""

import glob
import hashlib
import os
import time

import numba
from numba.core.caching import IndexDataCacheFile

from fleet_mpi import notices
from fleet_mpi.kernels.numba.cache_folder import temporary_folder

LEFT_OVER_S = 3600  # the code of another source; younger files may be those of a rank that compiles right now


def compiled(function):
    """The function as a numba kernel, compiled at its first call and kept on disk."""
    try:
        kernel = _compiler(cache=True)(function)
    except RuntimeError as error:
        if "no locator" not in str(error):
            raise
        kernel = _elsewhere(function)
    files = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    if type(files) is IndexDataCacheFile:
        files.__class__ = SharedFiles
    return kernel


def _compiler(cache):
    # nogil: communication and data threads go on while a kernel runs. cache: compiled once per machine.
    # error_model numpy: no branch for division by zero, without it loops do not vectorise (Adam on
    # 1 M floats: 2.7 ms -> 0.4 ms). No fastmath: sums must not depend on the compiler's mood.
    return numba.njit(nogil=True, cache=cache, error_model="numpy")


def _elsewhere(function):
    """The kernel of a function for which numba finds no folder that can be written to."""
    folder = temporary_folder()
    if folder is None:
        return _compiler(cache=False)(function)
    numba.config.CACHE_DIR = folder  # looked at first for all kernels from now on
    return _compiler(cache=True)(function)


class SharedFiles(IndexDataCacheFile):
    """The files of a kernel's compiled versions, for ranks that compile at the same time.

    numba numbers a kernel's versions and writes their list before the code: two ranks may give one number to two
    versions, or read the code that an older source left under a number; then the wrong code runs. Here a file is named
    after what it holds and is there before the list speaks of it. What a rank adds to the list may still be lost by
    another's; then it is compiled once more.
    """

    def save(self, key, data):
        """Keep the code of one version, if there is room."""
        try:
            self._save(key, data)
        except OSError as error:
            notices.once(("cache", error.errno),
                         f"compiled kernels cannot be kept in {self._cache_path} ({error.strerror}): "
                                                 f"the next start compiles them again")

    def _save(self, key, data):
        base = self._index_name.removesuffix(".nbi")
        name = f"{base}.{hashlib.sha256(repr((self._source_stamp, key)).encode()).hexdigest()[:16]}.nbc"
        known = self._load_index()
        self._save_data(name, data)
        if not known:  # the source is new
            self._remove_leftovers(base)
        self._save_index({**self._load_index(), key: name})

    def _remove_leftovers(self, base):
        for path in glob.glob(os.path.join(glob.escape(self._cache_path), glob.escape(base) + ".*.nbc")):
            try:
                if time.time() - os.path.getmtime(path) > LEFT_OVER_S:
                    os.remove(path)
            except OSError:
                pass  # another rank was quicker
