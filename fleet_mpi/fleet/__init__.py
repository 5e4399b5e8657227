"""Fleet: roles, strategies, and the facade that scripts call. In one process every role is worker 0 of 1."""
