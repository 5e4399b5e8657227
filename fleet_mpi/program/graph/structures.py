"""Nested structures of variables: lists, tuples, named tuples and dictionaries, as cells and decoders hand states
on."""

from fleet_mpi.errors import UsageError


def is_nested(given):
    """Whether this holds others."""
    return isinstance(given, (list, tuple, dict))


def as_list(given):
    """A list or tuple as a list; anything else as its only element."""
    return list(given) if isinstance(given, (list, tuple)) else [given]


def flatten(structure):
    """The leaves, in order; dictionaries by sorted key."""
    if isinstance(structure, dict):
        return [leaf for key in sorted(structure) for leaf in flatten(structure[key])]
    if isinstance(structure, (list, tuple)):
        return [leaf for one in structure for leaf in flatten(one)]
    return [structure]


def pack_like(structure, leaves):
    """A structure like this one with other leaves, in the order of ``flatten``."""
    leaves, wanted = list(leaves), len(flatten(structure))
    if len(leaves) != wanted:
        raise UsageError(f"pack_sequence_as: the structure has {wanted} leaves, got {len(leaves)} for them")
    return _packed(structure, iter(leaves))


def _packed(structure, leaves):
    if isinstance(structure, dict):
        found = {key: _packed(structure[key], leaves) for key in sorted(structure)}
        return {key: found[key] for key in structure}
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*(_packed(one, leaves) for one in structure))
    if isinstance(structure, (list, tuple)):
        return type(structure)(_packed(one, leaves) for one in structure)
    return next(leaves)


def map_structure(function, *structures):
    """The structure of what a function gives for the leaves of equal structures."""
    for other in structures[1:]:
        require_alike(structures[0], other, check_types=False)
    return pack_like(structures[0], [function(*some) for some in zip(*map(flatten, structures))])


def require_alike(nest1, nest2, check_types=True):
    """Raise unless two structures differ in their leaves only; a list may stand for a tuple without ``check_types``."""
    if is_nested(nest1) != is_nested(nest2) or isinstance(nest1, dict) != isinstance(nest2, dict):
        _refuse(nest1, nest2, "one holds others where the other does not")
    if not is_nested(nest1):
        return
    if check_types and type(nest1) is not type(nest2):
        _refuse(nest1, nest2, f"a {type(nest1).__name__} is no {type(nest2).__name__}")
    if len(nest1) != len(nest2):
        _refuse(nest1, nest2, f"one has {len(nest1)} parts, the other {len(nest2)}")
    if isinstance(nest1, dict) and nest1.keys() != nest2.keys():
        _refuse(nest1, nest2, f"the keys {sorted(nest1)} are not {sorted(nest2)}")
    for key in nest1 if isinstance(nest1, dict) else range(len(nest1)):
        require_alike(nest1[key], nest2[key], check_types)


def _refuse(nest1, nest2, reason):
    raise UsageError(f"structures differ: {reason}; got {nest1!r:.80} and {nest2!r:.80}")
