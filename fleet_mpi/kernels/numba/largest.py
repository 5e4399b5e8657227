"""Places of the largest numbers for host arrays. Same name, arguments and results as ``reference/largest.py``."""

from fleet_mpi.kernels.numba.compiling import compiled


@compiled
def largest_places(x, begins, widths, longest, out):
    """Each number walks in from the end of the places found so far; few get far."""
    count = out.shape[1]
    for i in range(out.shape[0]):
        begin, line = begins[i], out[i]
        line[:] = -1
        for place in range(widths[i]):
            number = x[begin + place]
            at = min(place, count)
            while at > 0 and number > x[begin + line[at - 1]]:
                if at < count:
                    line[at] = line[at - 1]
                at -= 1
            if at < count:
                line[at] = place
