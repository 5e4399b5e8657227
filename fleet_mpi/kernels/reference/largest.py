"""The places of the largest numbers in lines of any length, which lie anywhere in one array."""

from fleet_mpi.arrays import module_of
from fleet_mpi.kernels import kernel


@kernel
def largest_places(x, begins, widths, longest, out):
    """out[i] = the places of line i's largest numbers, largest first, the first of equals; -1 where the line ends.

    Line i is x[begins[i]:begins[i] + widths[i]], of at most ``longest`` numbers; out is int32 [lines, places].
    """
    xp, count = module_of(x), min(out.shape[1], longest)
    out.fill(-1)
    if not count or not x.shape[0]:
        return
    places = xp.arange(longest, dtype="int64")
    inside = places < widths[:, None]
    numbers = xp.where(inside, x[xp.where(inside, begins[:, None] + places, 0)], -xp.inf)
    order = xp.argsort(-numbers, axis=1, kind="stable")[:, :count]
    out[:, :count] = xp.where(places[:count] < widths[:, None], order, -1)
