"""Functions of higher rooms, by name: a program is data, and names who runs what it is part of.

Imports go downwards only. A runner is imported when it is first called, so that whoever makes a program need not
import what will run it.
"""

import importlib


class Runner:
    """The function ``name`` of ``module``."""

    def __init__(self, module, name):
        self.module, self.name, self._found = module, name, None

    def __call__(self, *args):
        if self._found is None:
            self._found = getattr(importlib.import_module(self.module), self.name)
        return self._found(*args)
