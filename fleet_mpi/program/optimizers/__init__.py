"""Optimizers: classes that add backward and update ops to a program.

    base            Optimizer: what all share
    plain           those that are only an update rule, with the arguments of 1.x
    paddle2         the same with the arguments of 2.x
    compressed      DGC: momentum with deep gradient compression
    wrappers        recompute, gradient merge, lookahead: optimizers around another one
    decoupled_decay     weight decay apart from the gradient, for any of them
    averages        averages of parameters, to be used in their place for a while

    learning_rate   the rate as a variable of the program
    lr              the schedulers of 2.x
    state           an optimizer's state as a dictionary
"""
