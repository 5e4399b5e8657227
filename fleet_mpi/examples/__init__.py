"""Examples: ``python -m fleet_mpi.examples.NAME --help``; each trains at once, on synthetic data if need be.

    fit_a_line          linear regression
    recognize_digits    LeNet on MNIST
    word2vec            word vectors
    wide_and_deep       click prediction, in two versions
    resnet              ResNet on flowers
    jax_arrays          the array door around a jitted gradient function of JAX
    torch/              examples for PyTorch

    training            what all share: roles, modes and shares of samples, by the three APIs of the guides
    progress            the line that tells how training goes
"""
