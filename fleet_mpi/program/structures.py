"""Nested structures of variables: lists, tuples, named tuples and dictionaries, as cells and decoders hand states on."""


def is_nested(given):
    """Whether this holds others."""
    return isinstance(given, (list, tuple, dict))


def flatten(structure):
    """The leaves, in order; dictionaries by sorted key."""
    if isinstance(structure, dict):
        return [leaf for key in sorted(structure) for leaf in flatten(structure[key])]
    if isinstance(structure, (list, tuple)):
        return [leaf for one in structure for leaf in flatten(one)]
    return [structure]


def pack_like(structure, leaves):
    """A structure like this one with other leaves, in the order of ``flatten``."""
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
    return pack_like(structures[0], [function(*some) for some in zip(*map(flatten, structures))])
