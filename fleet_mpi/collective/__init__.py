"""Training without servers: every rank is a worker, and gradients are summed over all of them.

``buckets`` = which gradients travel together · ``exact`` and ``library`` = how a bucket is summed (in a fixed order, or
as the MPI library likes) · ``broadcast`` = how all begin with the same values · ``group`` = who takes part, and waiting
for them. Knows arrays, no programs.
"""
