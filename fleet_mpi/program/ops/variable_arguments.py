"""Arguments of ops that may be variables: an attribute, or the values of the inputs that stand for it.

An op names such inputs in ``given``. Their values are unknown while the program is built and are read when the op is
planned; where they follow from neither shapes nor constants, the program is interpreted.
"""


def given_numbers(k, attr="shape", whole="ShapeTensor", parts="ShapeTensorList"):
    """Numbers: an attribute, or the values of one variable, or of a list of one-number variables.

    While building, -1 where only the run will tell.
    """
    if k.has(whole):
        value = k.known(whole)
        return [-1] * max(k.shape(whole)[0], 1) if value is None else [int(one) for one in value.reshape(-1)]
    given = list(k.attr(attr, ()))
    if not k.has(parts):
        return given
    values = [k.known(parts, i) for i in range(k.count(parts))]
    fallback = given if len(given) == len(values) else [-1] * len(values)
    return [int(value.reshape(-1)[0]) if value is not None else one for value, one in zip(values, fallback)]


def given_number(k, attr, slot):
    """A number: an attribute, or the value of a variable of one element; None where only the run will tell."""
    if not k.has(slot):
        return k.attr(attr)
    value = k.known(slot)
    return None if value is None else int(value.reshape(-1)[0])


def are_unknown(k, slots):
    """Whether one of these slots holds a variable whose values only the run will tell."""
    return not k.concrete and any(k.has(slot.rstrip("?*")) for slot in slots.split())
