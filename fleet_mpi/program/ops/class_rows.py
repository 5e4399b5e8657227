"""What losses over many classes share: logits of a few classes, from the rows of a weight chosen by id.

With ``is_sparse`` the weight's gradient is Rows. Where servers keep the weight (a DistantTable), its rows come over
the wire into the op's output ``Rows``, which transpiling adds; the gradient reads them there. An id of -1 chooses
no row.
"""

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.kernels.reference import row_products as kernels
from fleet_mpi.program.graph.registry import FORWARD
from fleet_mpi.program.ops.embedding import fetch_call
from fleet_mpi.program.ops.indexing import scatter_call

ROWS = "Rows"
REMOTE = {"is_sparse": False, "remote_prefetch": False, "table_names": [], "height_sections": [], "epmap": [],
          "trainer_id": 0}


def logits_call(k, x, table, ids, out):
    """The call that fills ``out`` [n, chosen] with the products of x's rows and the chosen rows."""
    run = kernels.row_products.pick(x)
    if not isinstance(table, arrays.DistantTable):
        return lambda: run(x, table, ids, out)
    shape = (*ids.shape, table.shape[1])
    rows = k[ROWS] if k.has(ROWS) else k.keep(shape, table.dtype)
    line, fill = filled_ids(k, ids)
    flat, mine = rows.reshape(-1, shape[2]), _positions(k, ids)
    fetch = fetch_call(k, table, line, flat, -1)
    return lambda: (fill(), fetch(), run(x, flat, mine(), out))


def input_grad_call(k, weight, dlogits, ids, dx):
    """The call that fills the gradient of x; the rows come from ``Rows``, or from the weight."""
    run = kernels.row_products_of_x.pick(dlogits)
    if not k.has(ROWS):
        table = k[weight]
        return lambda: run(dlogits, table, ids, dx)
    flat, mine = k[ROWS].reshape(-1, k.shape(ROWS)[2]), _positions(k, ids)
    return lambda: run(dlogits, flat, mine(), dx)


def weight_grad_call(k, weight, dlogits, x, ids):
    """The call that makes the weight's gradient: Rows by id, or zeros to which rows are added in order."""
    height, width = k.meta(weight + "@GRAD").shape
    line, fill = filled_ids(k, ids)
    is_sparse, shape = k.attr("is_sparse"), (*ids.shape, width)
    values = (k.keep if is_sparse else k.scratch)(shape, x.dtype)
    flat, run = values.reshape(-1, width), kernels.row_products_of_rows.pick(dlogits)
    if is_sparse:
        k.put(weight + "@GRAD", arrays.Rows(line, flat, height))
        return lambda: (fill(), run(dlogits, x, ids, values))
    scatter = scatter_call(k, k[weight + "@GRAD"], line, flat, "the weight's gradient")
    return lambda: (fill(), run(dlogits, x, ids, values), scatter())


def infer_grads(weight):
    """A shape rule of a gradient: all as their variables, the weight's as rows where the op is sparse."""
    def infer(k):
        for slot, names in k.op.outputs.items():
            if names and names[0]:
                meta = k.meta_of(k.attrs[FORWARD][slot.removesuffix("@GRAD")][0])
                is_rows = slot == weight + "@GRAD" and k.attr("is_sparse")
                k.set(slot, meta.shape, meta.dtype, () if is_rows else meta.lod, kind="rows" if is_rows else "dense")
    return infer


def filled_ids(k, ids):
    """The ids in one line, and the call that fills it: in place of -1 the first id of the same row.

    That row is touched anyway, and gets zeros in addition: an optimizer sees no row that the batch has not chosen.
    """
    line, xp = k.keep((ids.size,), np.int64), k.xp
    grid = line.reshape(ids.shape)
    return line, lambda: xp.copyto(grid, xp.where(ids < 0, xp.maximum(ids[:, :1], 0), ids))


def _positions(k, ids):
    """A function that gives the ids of fetched rows, one for each choice; -1 where none was chosen."""
    xp, own = k.xp, k.xp.arange(ids.size, dtype="int64").reshape(ids.shape)
    return lambda: xp.where(ids < 0, -1, own)
