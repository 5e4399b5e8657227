"""From what scripts feed (arrays, lists, LoD tensors, a loader's next batch) to arrays of the declared type."""

import numpy as np

from fleet_mpi.errors import ProgramError, UsageError
from fleet_mpi.program.engine.scope import Tensor
from fleet_mpi.program.graph import lod as lods
from fleet_mpi.program.graph.registry import Meta


class FedSequence(np.ndarray):
    """An array of rows with a LoD, on its way into a program."""

    lod = ()


def as_feed(feed, program):
    """A dictionary of arrays (or FedSequences) from any form of feed."""
    if feed is None or isinstance(feed, (dict, list)) and not feed:
        feed = _from_loaders(program)
    if isinstance(feed, (list, tuple)) and all(isinstance(one, dict) for one in feed):
        feed = _from_places(feed)
    if not isinstance(feed, dict):
        raise UsageError(f"feed: expected a dictionary {{name: value}}, or the list of dictionaries that a loader "
                         f"yields, got {type(feed).__name__}; {_what_it_reads(program)}")
    block = program.global_block()
    return {name: as_array(value, block.vars.get(name)) for name, value in feed.items()}


def _from_loaders(program):
    feed = {}
    for loader in program._loaders:
        if loader.is_started():
            feed.update(loader.next_feed())
        elif any(var.name in op.input_arg_names for var in loader.variables()
                 for op in program.global_block().ops):
            raise UsageError("the program's loader is not started: call its start() before exe.run, "
                             "and reset() after the EOFException")
    return feed


def _what_it_reads(program):
    """The end of a sentence: how a program's data variables are fed."""
    names = [name for name, var in program.global_block().vars.items() if var.is_data]
    if not names:
        return "this program declares no data"
    return f"this program reads {', '.join(names)}: feed={{{', '.join(f'{name!r}: ...' for name in names)}}}"


def _from_places(feeds):
    """What an iterable loader yields: a list with one dictionary per place; several are joined."""
    if len(feeds) == 1:
        return feeds[0]
    return {name: _joined([as_array(one[name], None) for one in feeds]) for name in feeds[0]}


def _joined(values):
    """Arrays one behind the other; of sequences, the sequences too."""
    lods_of_all = [lods.to_lengths(value.lod) for value in values if type(value) is FedSequence]
    lengths = [sum(levels, []) for levels in zip(*lods_of_all)]
    return _sequence(np.concatenate(values), lods.from_lengths(lengths))


def as_array(value, var):
    """One fed value as an array; ragged lists and LoD tensors as a FedSequence."""
    if isinstance(value, Tensor):
        return _sequence(_flat_if_declared_flat(np.asarray(value.numpy()), var), value.lod_offsets)
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], np.ndarray) \
            and isinstance(value[1], (list, tuple)):
        lengths = value[1] if value[1] and isinstance(value[1][0], (list, tuple)) else [value[1]]
        return _sequence(value[0], lods.from_lengths(lengths))
    if type(value) is FedSequence or type(value) is np.ndarray:
        return value
    if var is not None and var.lod_level == 1 and isinstance(value, (list, tuple)):
        rows = _rows_of_sequences(value, var)
        if rows is not None:
            return _sequence(np.concatenate(rows), lods.from_lengths([map(len, rows)]))
    try:
        return _from_list(value, var)
    except (TypeError, ValueError) as error:
        name, dtype = (var.name, var._dtype) if var is not None else ("?", "any type")
        raise ProgramError(f"feed {name!r}: {type(value).__name__} does not make an array of "
                           f"{dtype} ({error})") from None


def _flat_if_declared_flat(array, var):
    """``create_lod_tensor`` makes a column of a list of ids; a variable of sequences declared [None] takes it flat."""
    flat = var is not None and var.lod_level and len(var.shape) == 1 and array.shape[1:] == (1,)
    return array.reshape(-1) if flat else array


def _from_list(value, var):
    """An array of the variable's type from lists or a bare number, which feeds a variable of shape [1]."""
    made = np.array(value, ndmin=1).view(np.ndarray)
    if made.dtype.kind not in "biufc":
        raise TypeError(f"it holds {made.dtype}, not numbers")
    if var is None or made.size and made.dtype.kind == "f" and var._dtype.kind in "iu":
        return made  # what loses fractions is refused, as an array would be
    return made.astype(var._dtype)


def _rows_of_sequences(sequences, var):
    """The rows of each sequence, if this is a list of lists of what the variable has as rows; else None."""
    try:
        return [_from_list(one, var).reshape((len(one), *var.shape[1:])) for one in sequences] or None
    except (TypeError, ValueError):
        return None


def _sequence(array, offsets):
    if not offsets:
        return np.asarray(array)
    made = np.ascontiguousarray(array).view(FedSequence)
    made.lod = offsets
    return made


def feed_meta(var, value):
    """The Meta of a fed value, checked against the variable it is for."""
    lod = value.lod if type(value) is FedSequence else ()
    wrong = lods.problem(lod, len(value)) if lod else None
    if wrong:
        raise ProgramError(f"feed {var.name!r}: {wrong}")
    if not np.can_cast(value.dtype, var._dtype, "same_kind"):
        raise ProgramError(f"feed {var.name!r}: expected {var._dtype}, got {value.dtype}: "
                           f"convert it, e.g. .astype({var._dtype.name!r})")
    _check_shape(var, value.shape)
    return Meta(value.shape, var._dtype, lod)


def _check_shape(var, shape):
    """A shape binds only where ``fluid.data`` declared it.

    With ``layers.data`` models are built for the longest sentence and fed with shorter ones, or with arrays that lack
    the dimension of the batch: the ops decide (see ``shape_remark``).
    """
    want = var.shape
    fits = len(want) == len(shape) and all(w in (-1, got) for w, got in zip(want, shape))
    if not fits and var.need_check_feed and var.lod_level == 0:
        raise ProgramError(f"feed {var.name!r}: {_shapes(want, shape)}")


def shape_remark(feed, program):
    """For an error of a run: the feeds with other dimensions than declared, as the start of a sentence, or ''."""
    variables = program.global_block().vars
    return "".join(f"feed {name!r}: {_shapes(variables[name].shape, value.shape)}; " for name, value in feed.items()
                   if name in variables and len(variables[name].shape) != len(value.shape)
                   and variables[name].lod_level == 0)


def _shapes(want, got):
    return f"expected shape {list(want)} (-1: any), got {list(got)}"
