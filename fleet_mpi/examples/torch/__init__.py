"""Examples for PyTorch: ``python -m fleet_mpi.examples.torch.NAME --help``; each runs alone and under mpirun.

    mlp         a perceptron whose optimizer runs on parameter servers
    resnet18    ResNet-18 on small images, by equal workers
    clicks      click prediction with embeddings whose rows live on parameter servers

    data        synthetic data, the same on every machine
"""
