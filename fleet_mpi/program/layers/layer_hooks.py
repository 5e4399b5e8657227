"""Functions that a layer calls around its forward, each of which can be taken off again."""

import itertools


class Hooks:
    """Registered functions, in the order of their registration."""

    def __init__(self):
        self._functions, self._numbers = {}, itertools.count()

    def register(self, function):
        """Add a function; returns a handle whose ``remove()`` takes it off."""
        number = next(self._numbers)
        self._functions[number] = function
        return HookRemoveHelper(self._functions, number)

    def __iter__(self):
        return iter(list(self._functions.values()))


class HookRemoveHelper:
    """The handle of one registered function."""

    def __init__(self, functions, number):
        self._functions, self._number = functions, number

    def remove(self):
        """Take the function off; idempotent."""
        self._functions.pop(self._number, None)
