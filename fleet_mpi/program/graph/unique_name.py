"""Names that no other variable has: ``fc_0``, ``fc_1``, ...; guards that start the count anew."""

from contextlib import contextmanager

from fleet_mpi.errors import UsageError


class Generator:
    """Counts each key apart: the first ``fc`` is ``fc_0``."""

    def __init__(self, prefix=""):
        self.prefix = prefix
        self.counts = {}

    def __call__(self, key):
        count = self.counts.get(key, 0)
        self.counts[key] = count + 1
        return f"{self.prefix}{key}_{count}"


_generator = Generator()
_scopes = []


def generate(key):
    """A name ``key_N`` not given out before under this guard."""
    return _generator(key)


def switch(new_generator=None):
    """Use another generator (a fresh one by default) from now on; returns the one used before."""
    global _generator
    before = _generator
    _generator = new_generator or Generator()
    return before


@contextmanager
def guard(new_generator=None):
    """Within the block names are counted anew, from a given Generator, prefix text, or zero."""
    if isinstance(new_generator, bytes):
        new_generator = new_generator.decode()
    if isinstance(new_generator, str):
        new_generator = Generator(new_generator)
    elif not (new_generator is None or isinstance(new_generator, Generator)):
        raise UsageError(f"unique_name.guard: expected a prefix or a Generator, got {new_generator!r}")
    before = switch(new_generator)
    try:
        yield
    finally:
        switch(before)


@contextmanager
def name_scope(prefix=None):
    """Mark the ops made within the block with a readable scope, ``/encoder/layer_0/``."""
    if prefix is not None and (not prefix or "/" in prefix):
        raise UsageError(f"name_scope: expected a name without '/', got {prefix!r}")
    _scopes.append(prefix or "scope")
    try:
        yield
    finally:
        _scopes.pop()


def current_scope():
    """The scopes that are open now, as one path."""
    return "/" + "".join(f"{name}/" for name in _scopes)
