"""The row kernels for cupy's arrays: ids are looked at and rows added up without a wait.

Rows of one id are added by one thread per column, in order of occurrence: ids are sorted first, equal ones staying in
order.
"""

import numpy as np

from fleet_mpi.arrays import module_of
from fleet_mpi.kernels.cuda.compiling import fits, launch
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
    if not fits(table, values, dtypes=("float16", "float32", "float64", "int32", "int64")):
        return rows.scatter_add_rows.reference(table, ids, values, padding_idx)
    line = _line(ids)
    order = module_of(line).argsort(line, kind="stable")
    launch(SOURCE, "add_in_order", values.size, values, line, order, table,
           *map(np.int64, (line.size, values.size // max(line.size, 1), table.shape[0], padding_idx)))
    return rows.ALL_INSIDE


def _line(ids):
    """The ids side by side, as sources read them: a column of a matrix is not."""
    return module_of(ids).ascontiguousarray(ids, "int64").reshape(-1)
