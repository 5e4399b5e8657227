"""What is computed: programs, the ops they are made of, and the executor that runs them.

    graph/          programs as data
    engine/         runs them
    build/          adds gradients, parameters and what belongs to updates
    ops/            every op: its computation and gradient, one file per family
    layers/         functions and classes that add ops to the default program
    optimizers/     what ``minimize`` adds
    models/         networks as layers

A program is data; nothing runs in it. Knows nothing of ranks, servers or messages.
"""
