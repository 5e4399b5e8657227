"""``paddle.compat``: what scripts of Python 2 and 3 shared."""

from fleet_mpi.errors import missing_name as _missing_name

long_type = int


def to_text(obj, encoding="utf-8", inplace=False):
    """Bytes as text, also inside lists and sets; other things as they are."""
    return _converted(obj, inplace, lambda one: one.decode(encoding) if isinstance(one, bytes) else one)


def to_bytes(obj, encoding="utf-8", inplace=False):
    """Text as bytes, also inside lists and sets; other things as they are."""
    return _converted(obj, inplace, lambda one: one.encode(encoding) if isinstance(one, str) else one)


def floor_division(x, y):
    """x // y."""
    return x // y


def get_exception_message(exc):
    """An exception's words."""
    return str(exc)


def _converted(obj, inplace, convert):
    if not isinstance(obj, (list, set)):
        return convert(obj)
    made = [_converted(one, False, convert) for one in obj]
    if not inplace:
        return type(obj)(made)
    obj.clear()
    (obj.extend if isinstance(obj, list) else obj.update)(made)
    return obj


__getattr__ = _missing_name("paddle.compat", globals())
