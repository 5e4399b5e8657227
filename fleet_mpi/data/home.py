"""The folder of data files: finding, checking and splitting them. Nothing is ever fetched.

``DATA_HOME`` is the environment variable of that name or ``~/.cache/paddle/dataset``; a script may
assign ``home.DATA_HOME``. Knows nothing of any data set.
"""

import contextlib
import contextvars
import glob
import hashlib
import os
import pickle
from types import MappingProxyType
from urllib.parse import unquote

from fleet_mpi import notices, settings
from fleet_mpi.data import safe_pickle
from fleet_mpi.errors import EnvironmentProblem, UsageError

_named = contextvars.ContextVar("named", default=MappingProxyType({}))


def __getattr__(name):
    # Looked up late, so that importing does not fix what settings and scripts may still change.
    if name == "DATA_HOME":
        return settings.get("DATA_HOME") or os.path.expanduser("~/.cache/paddle/dataset")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def folder(module_name):
    """Where the files of one data set lie (or would lie)."""
    base = globals().get("DATA_HOME") or __getattr__("DATA_HOME")
    return os.path.join(base, module_name)


def find(url, module_name, md5sum=None, save_name=None):
    """The path of a file placed under ``DATA_HOME/module_name``, or None.

    A file whose md5 is not ``md5sum`` is taken all the same, with one warning. Within ``named``, the path that was
    given.
    """
    if url in _named.get():
        return _named.get()[url]
    for name in _names(url, save_name):
        path = os.path.join(folder(module_name), name)
        if os.path.isfile(path):
            _compare(path, md5sum)
            return path
    return None


@contextlib.contextmanager
def named(paths):
    """Within it ``find`` gives the script's own paths, {url: path or None}, for these files; they must exist."""
    given = {url: os.fspath(path) for url, path in paths.items() if path is not None}
    for path in given.values():
        if not os.path.isfile(path):
            raise UsageError(f"expected a data file at {path}, and there is none")
    token = _named.set(given)
    try:
        yield
    finally:
        _named.reset(token)


def download(url, module_name, md5sum, save_name=None):
    """The path of the file that the original would fetch; it has to be there already.

    Raises:
        EnvironmentProblem: no such file; the text says where to put it.
    """
    path = find(url, module_name, md5sum, save_name)
    if path is None:
        wanted = os.path.join(folder(module_name), _names(url, save_name)[0])
        raise EnvironmentProblem(
            f"{module_name}: expected the file {wanted}, and it is not there. fleet_mpi fetches nothing "
            f"from the network: get {url} elsewhere and put it there (or set DATA_HOME)")
    return path


def md5file(fname):
    """The md5 of a file's content, as hex digits."""
    digest = hashlib.md5(usedforsecurity=False)
    with open(fname, "rb") as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest()


def split(reader, line_count, suffix="%05d.pickle", dumper=pickle.dump):
    """Write a reader's samples to numbered files of ``line_count`` samples each.

    ``dumper(samples, file)`` gets a text file, except ``pickle.dump``, which gets a binary one.
    """
    if not callable(dumper):
        raise UsageError(f"split: dumper is called as dumper(samples, file), got {dumper!r}")
    if line_count < 1:
        raise UsageError(f"split: line_count is at least 1, got {line_count!r}")
    samples, number = [], 0
    for sample in reader():
        samples.append(sample)
        if len(samples) == line_count:
            _dump(samples, suffix % number, dumper)
            samples, number = [], number + 1
    if samples:
        _dump(samples, suffix % number, dumper)


def cluster_files_reader(files_pattern, trainer_count, trainer_id, loader=None):
    """A reader over every ``trainer_count``-th file that ``split`` wrote, starting with ``trainer_id``.

    Without a ``loader`` the files are read as pickles of plain values and arrays only: a file that
    asks for any other class is refused.
    """
    if loader is not None and not callable(loader):
        raise UsageError(f"cluster_files_reader: loader is called as loader(file), got {loader!r}")

    def read_files():
        for path in sorted(glob.glob(files_pattern))[trainer_id::trainer_count]:
            yield from _load(path, loader)

    return read_files


def _names(url, save_name):
    """Names under which a file may lie: as the original saves it, and as people know it."""
    if save_name is not None:
        return [save_name]
    last = url.split("/")[-1]
    plain = unquote(last).split("/")[-1]
    return [last] if plain == last else [last, plain]


def _compare(path, md5sum):
    if md5sum is None:
        return
    found = md5file(path)
    if found != md5sum:
        notices.once(("md5", path), f"{path}: md5 is {found}, expected {md5sum}; using the file all the same")


def _dump(samples, path, dumper):
    with open(path, "wb" if dumper is pickle.dump else "w") as file:
        dumper(samples, file)


def _load(path, loader):
    if loader is None or loader is pickle.load:
        with open(path, "rb") as file:
            return safe_pickle.load(file)
    with open(path) as file:
        return loader(file)
