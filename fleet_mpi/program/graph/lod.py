"""LoD arithmetic: nested sequence boundaries as a tuple of offset tuples, outermost level first.

``((0, 2, 5),)`` means two sequences of 2 and 3 rows. Knows no tensors.
"""

from fleet_mpi.errors import UsageError


def from_offsets(levels):
    """Offsets given as nested lists, as a tuple of tuples of int."""
    return tuple(tuple(int(offset) for offset in level) for level in levels)


def from_lengths(levels):
    """Lengths ``[[2, 3]]`` as offsets ``((0, 2, 5),)``."""
    return tuple(_accumulate(level) for level in levels)


def to_lengths(offsets):
    """Offsets as nested lists of lengths."""
    return [[end - start for start, end in zip(level, level[1:])] for level in offsets]


def problem(offsets, rows):
    """What is wrong with offsets over an array of so many rows, as words; None where nothing is."""
    for depth, level in enumerate(offsets):
        if not level or level[0] != 0:
            return f"level {depth} of the LoD must start with 0, got {list(level)}"
        if any(end < start for start, end in zip(level, level[1:])):
            return f"level {depth} of the LoD goes backwards: {list(level)}"
        below = len(offsets[depth + 1]) - 1 if depth + 1 < len(offsets) else rows
        if level[-1] != below:
            what = "rows" if depth + 1 == len(offsets) else f"sequences of level {depth + 1}"
            return f"level {depth} of the LoD covers {level[-1]} {what}, but there are {below}"
    return None


def row_offsets(offsets, level):
    """The offsets of one level, counted in rows of the array instead of sequences of the level below."""
    if not offsets:
        raise UsageError("a sequence op needs an input with LoD: declare it with lod_level=1 and feed "
                         "a LoD tensor (create_lod_tensor, or lists of lists through a DataFeeder)")
    current = offsets[level]
    for below in offsets[len(offsets) + level + 1 if level < 0 else level + 1:]:
        current = tuple(below[i] for i in current)
    return current


def _accumulate(lengths):
    offsets = [0]
    for length in lengths:
        offsets.append(offsets[-1] + int(length))
    return tuple(offsets)
