"""Optimizers: classes that add backward and update ops to a program.

``base`` is what all share, ``plain`` those that are only an update rule (1.x argument lists), ``paddle2``
the same with the lists of 2.x, ``compressed`` DGC, ``wrappers`` what wraps another optimizer, ``averages`` what
takes the place of parameters for a while, ``lr`` the schedulers of 2.x, ``learning_rate`` the rate's variable.
"""
