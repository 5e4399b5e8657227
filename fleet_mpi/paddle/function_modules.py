"""Modules of the original that hold one function of their own name, which the package above shows instead of them.

``import paddle.batch`` puts the module where the function was: ``paddle.batch(...)`` goes on working, since the
module can be called.
"""

import importlib as _importlib
import importlib.machinery as _machinery
import sys as _sys
import types as _types

# {path below ``paddle``: the module that shows the function}
TABLE = {"batch": "fleet_mpi.data.readers", "distributed.spawn": "fleet_mpi.paddle.distributed",
         "utils.deprecated": "fleet_mpi.paddle.utils"}

__path__ = []


class FunctionModule(_types.ModuleType):
    """A module that is called as the function of its name."""

    def __init__(self, path):
        super().__init__(f"{__name__}.{flat(path)}", f"``paddle.{path}``: holds and is the function of that name.")
        self.__spec__ = _machinery.ModuleSpec(self.__name__, None)
        # Taken now: the import system will put this module where the function is.
        setattr(self, path.rpartition(".")[2], getattr(_importlib.import_module(TABLE[path]), path.rpartition(".")[2]))
        self._function = path.rpartition(".")[2]

    def __call__(self, *args, **kwargs):
        return vars(self)[self._function](*args, **kwargs)


def flat(path):
    """The name here of the module with this path."""
    return path.replace(".", "_")


for _path in TABLE:
    globals()[flat(_path)] = _sys.modules[f"{__name__}.{flat(_path)}"] = FunctionModule(_path)
