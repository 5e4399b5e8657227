"""How bytes move between ranks.

    protocol    every message
    transport   the seam: sends and receives that are polled
    mpi         over a communicator
    loopback    within one process
    inboxes     memory for messages whose length is the sender's word
    segments    memory that the ranks of one node share
"""
