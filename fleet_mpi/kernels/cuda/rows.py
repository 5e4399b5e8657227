"""The row kernels for cupy's arrays: ids are looked at and rows added up without a wait.

Rows of one id are added by one thread per column, in order of occurrence: ids are sorted first, equal ones staying in
order, or each is linked with the next that equals it.
"""

import numpy as np

from fleet_mpi.arrays import module_of
from fleet_mpi.kernels.cuda.compiling import FLOATS, fits, launch
from fleet_mpi.kernels.reference import rows

# At most as many threads look for bad ids: each of them adds to one counter.
MOST_LOOKING = 1 << 13

# Sums of halves are rounded after every addition, as numpy's are.
SOURCE = r"""
extern "C" __global__ void add_in_order(const stored *values, const long long *ids, const long long *order,
                                        stored *table, long long count, long long width, long long height,
                                        long long padding, long long size)
{
    FOR_MY_ELEMENTS(i, size) {
        const long long first = i / width, column = i % width, id = ids[order[first]];
        if (id < 0 || id >= height || id == padding || (first && ids[order[first - 1]] == id))
            continue;
        stored total = table[id * width + column];
        for (long long place = first; place < count && ids[order[place]] == id; place++)
            total = narrow(widen(total) + widen(values[order[place] * width + column]));
        table[id * width + column] = total;
    }
}
"""

# Where a row's id comes again (``size``: nowhere), then where it came last before (-1: nowhere).
LINKS = r"""
extern "C" __global__ void link_by_looking(const long long *ids, long long *links, long long size)
{
    FOR_MY_ELEMENTS(i, size) {
        long long next = i + 1, last = i - 1;
        while (next < size && ids[next] != ids[i])
            next++;
        while (last >= 0 && ids[last] != ids[i])
            last--;
        links[i] = next;
        links[size + i] = last;
    }
}

extern "C" __global__ void link_by_order(const long long *ids, const long long *order, long long *links,
                                         long long size)
{
    FOR_MY_ELEMENTS(place, size) {
        const long long i = order[place];
        links[i] = place + 1 < size && ids[order[place + 1]] == ids[i] ? order[place + 1] : size;
        links[size + i] = place && ids[order[place - 1]] == ids[i] ? order[place - 1] : -1;
    }
}
"""

# The first row of an id works for all of them, a row with an id outside for itself.
TOTALS = r"""
extern "C" __global__ void total_rows(const stored *values, const long long *ids, const long long *links,
                                      long long *out_ids, stored *out, long long count, long long width,
                                      long long height, long long size)
{
    FOR_MY_ELEMENTS(i, size) {
        const long long row = i / width, column = i % width;
        const bool inside = ids[row] >= 0 && ids[row] < height;
        if (inside && links[count + row] >= 0)
            continue;
        long long first = inside ? row : 0;
        while (first < count && (ids[first] < 0 || ids[first] >= height))
            first++;
        stored total = first < count ? values[first * width + column] : stored(0);
        for (long long at = first < count ? links[first] : count; at < count; at = links[at])
            total = narrow(widen(total) + widen(values[at * width + column]));
        for (long long at = row; at < count; at = inside ? links[at] : count) {
            out[at * width + column] = total;
            if (!column)
                out_ids[at] = first < count ? ids[first] : 0;
        }
    }
}
"""
# So many ids look through all others in a tenth of a millisecond; to sort them, Thrust makes the host wait.
MOST_WITHOUT_SORT = 1 << 14

# The thread that is the last to finish knows the lowest position that any of them found; note[3] counts them. A note of
# an earlier call stays. Zeros mean that there is none, so positions are kept from the top down.
LOOKING = r"""
extern "C" __global__ void note_outside(const long long *ids, unsigned long long *note, long long lowest,
                                        long long height, long long spared, long long number, long long count,
                                        long long size)
{
    const unsigned long long top = ~0ull >> 1;
    FOR_MY_ELEMENTS(thread, size) {
        for (long long i = thread; i < count; i += size) {
            const long long id = ids[i];
            if ((id < lowest || id >= height) && id != spared) {
                atomicMax(note + 4, top - i);
                break;
            }
        }
        __threadfence();
        if (atomicAdd(note + 3, 1ull) != (unsigned long long)size - 1)
            continue;
        const unsigned long long found = atomicExch(note + 4, 0ull);
        if (found && !note[0]) {
            note[0] = number;
            note[1] = top - found;
            note[2] = ids[top - found];
        }
        note[3] = 0;
    }
}
"""


def note_outside(ids, lowest, height, spared, number, note):
    """One launch."""
    line = _line(ids)
    launch(LOOKING, "note_outside", min(line.size, MOST_LOOKING), line, note,
           *map(np.int64, (lowest, height, spared, number, line.size)))


def scatter_add_rows(table, ids, values, padding_idx):
    """A sort and one launch."""
    if not fits(table, values, dtypes=(*FLOATS, "int32", "int64")):
        return rows.scatter_add_rows.reference(table, ids, values, padding_idx)
    line = _line(ids)
    order = module_of(line).argsort(line, kind="stable")
    launch(SOURCE, "add_in_order", values.size, values, line, order, table,
           *map(np.int64, (line.size, values.size // max(line.size, 1), table.shape[0], padding_idx)))
    return rows.ALL_INSIDE


def total_rows(ids, values, height, out_ids, out_values):
    """Two launches; behind a sort where ids are many."""
    if not fits(values, out_values, dtypes=FLOATS) or not out_ids.flags.c_contiguous or not values.size:
        return rows.total_rows.reference(ids, values, height, out_ids, out_values)
    line = _line(ids)
    launch(TOTALS, "total_rows", values.size, values, line, _links(line), out_ids, out_values,
           *map(np.int64, (line.size, values.size // line.size, height)))
    return None


def _links(line):
    xp = module_of(line)
    links = xp.empty(2 * line.size, "int64")
    if line.size <= MOST_WITHOUT_SORT:
        launch(LINKS, "link_by_looking", line.size, line, links)
    else:
        launch(LINKS, "link_by_order", line.size, line, xp.argsort(line, kind="stable"), links)
    return links


def _line(ids):
    """The ids side by side, as sources read them: a column of a matrix is not."""
    return module_of(ids).ascontiguousarray(ids, "int64").reshape(-1)
