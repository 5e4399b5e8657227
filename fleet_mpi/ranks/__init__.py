"""What ``cluster`` is made of: meeting, the roster of roles, ending together, the command for jobs begun by hand.

Nothing here imports MPI: communicators are handed in.
"""
