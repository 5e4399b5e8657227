"""Layers: functions that add ops to the default program and return their output variables.

By family; ``fluid.layers`` and ``paddle.*`` give them the names that scripts know.
"""
