"""Which names, arguments and types cupy has: ``python -m tests.unit.testing.cupy_table`` writes it to tests/data.

Everything but ``at`` is read from the wheel, without a driver. Which types ``at`` takes is tried, on a device or on an
emulation of one; without either the types of the table that is there stay.
"""

import inspect
import json
import pathlib
import re

PATH = pathlib.Path(__file__).parents[2] / "data" / "cupy_table.json"
# What numpy's elementwise functions take; cupy's are asked for each.
UFUNC_KEYWORDS = ("out", "dtype", "casting", "where", "order", "subok", "signature", "axes", "axis", "keepdims")
AT_TYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
            "float64", "complex64", "complex128")


def read():
    """The table: names and methods to their arguments (None: no function), elementwise ones, generalised ones, at."""
    return json.loads(PATH.read_text())


def main():
    """Write the table anew."""
    import cupy
    ufuncs = [name for name in dir(cupy) if type(getattr(cupy, name)).__name__ == "ufunc"]
    table = {
        "cupy": cupy.__version__,
        "names": {name: _arguments(getattr(cupy, name)) for name in dir(cupy) if not name.startswith("_")},
        "linalg": [name for name in dir(cupy.linalg) if not name.startswith("_")],
        "methods": {name: _arguments(getattr(cupy.ndarray, name)) for name in dir(cupy.ndarray)
                    if not name.startswith("_")},
        "ufuncs": ufuncs,
        "ufunc_keywords": [name for name in UFUNC_KEYWORDS if not _is_refused(cupy.add, name)],
        "gufuncs": [name for name in dir(cupy) if type(getattr(cupy, name)).__name__ == "_GUFunc"],
        "at": _at(cupy, ufuncs),
    }
    PATH.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")


def _arguments(value):
    """The names of a function's arguments, by its signature or the first line of its text; None if it is none."""
    if not callable(value) or isinstance(value, type):
        return None
    try:
        found = inspect.signature(value).parameters
        return [name for name in found if name != "self"]
    except (TypeError, ValueError):
        line = re.match(r"[\w.]+\((.*?)\)(?: ->|$)", (value.__doc__ or "").splitlines()[0] if value.__doc__ else "")
        words = line.group(1).split(", ") if line else []
        return [word.split("=")[0].split()[-1].lstrip("*") for word in words if word and word != "self"]


def _is_refused(ufunc, keyword):
    try:
        ufunc(1, 2, **{keyword: None})
    except TypeError as error:
        return "Wrong arguments" in str(error)
    except Exception:  # it went on, and found no device or no compiler
        return False
    return False


def _at(cupy, ufuncs):
    try:
        cupy.zeros(1).sum()
    except Exception:
        return read()["at"]
    found = {name: [kind for kind in AT_TYPES if _takes(cupy, name, kind)] for name in ufuncs}
    return {name: kinds for name, kinds in found.items() if kinds}


def _takes(cupy, name, kind):
    try:
        getattr(cupy, name).at(cupy.zeros(2, kind), cupy.array([0]), cupy.ones(1, kind))
    except (TypeError, NotImplementedError):
        return False
    except Exception:  # not cupy refuses, but what compiles for the emulation
        return True
    return True


if __name__ == "__main__":
    main()
