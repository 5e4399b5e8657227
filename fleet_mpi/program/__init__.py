"""What is computed: programs, the ops they are made of, and the executor that runs them.

A program is data; nothing runs in it. Knows nothing of ranks, servers or messages.
"""
