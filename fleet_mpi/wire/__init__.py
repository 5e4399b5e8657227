"""How bytes move between ranks: messages (protocol), the seam (transport), and two transports (mpi, loopback)."""
