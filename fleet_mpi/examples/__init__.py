"""Examples: ``python -m fleet_mpi.examples.NAME --help``; each trains at once, on synthetic data if need be.

fit_a_line (linear regression), recognize_digits (LeNet), word2vec, wide_and_deep (two versions), resnet.
"""
