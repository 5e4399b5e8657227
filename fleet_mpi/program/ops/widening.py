"""Float32 copies of float16 variables on a host, whose kernels have no float16; a device's widen what they read."""

import functools

import numpy as np

from fleet_mpi.kernels.widening import HALF, SINGLE


def in_float32(bind):
    """Decorator of an op's ``run`` or ``grad``: it works on float32 copies of what float16 variables hold.

    The copies are scratch memory: between ops there are float16 numbers only. On a device nothing is copied.
    """
    @functools.wraps(bind)
    def bind_wide(k):
        if k.xp is not np:
            return bind(k)
        wide = WideCall(k)
        run = bind(wide)
        if not wide.copies:
            return run
        reads = [(copy, array) for name, (copy, array) in wide.copies.items() if name in k.op.input_arg_names]
        writes = [(array, copy) for name, (copy, array) in wide.copies.items() if name in k.op.output_arg_names]

        def run_wide():
            for copy, array in reads:
                k.xp.copyto(copy, array)
            run()
            for array, copy in writes:
                k.xp.copyto(array, copy, casting="same_kind")
        return run_wide
    return bind_wide


class WideCall:
    """A bound call that gives float32 copies in place of float16 arrays, and notes them by variable."""

    def __init__(self, k):
        self._call = k
        self.copies = {}  # variable -> (copy, array)

    def __getattr__(self, name):
        return getattr(self._call, name)

    def __getitem__(self, slot):
        """The value in a slot, wide."""
        array, name = self._call[slot], self._call.name(slot)
        if getattr(array, "dtype", None) != HALF:
            return array
        if name not in self.copies:
            self.copies[name] = self._call.scratch(array.shape, SINGLE), array
        return self.copies[name][0]
