"""Rows of a table by id.

With ``is_sparse`` the table's gradient is Rows: the ids, and the output's gradient as it lies.
"""

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.program.graph.registry import FORWARD, op
from fleet_mpi.program.ops.indexing import gather_call, scatter_call
from fleet_mpi.program.ops.manipulation import product

LOOKUP = {"is_sparse": False, "is_distributed": False, "padding_idx": -1, "remote_prefetch": False,
          "any_id": False, "entry": "none", "table_names": [], "height_sections": [], "epmap": [], "trainer_id": 0}


def output_shape(k, keeps_last):
    """Ids' shape and the width of the table; the first form replaces a last dimension of 1."""
    ids, table = list(k.shape("Ids")), k.shape("W")
    if len(table) != 2:
        k.fail(f"expected a table of two dimensions, got {list(table)}")
    if k.dtype("Ids").kind != "i":
        k.fail(f"expected whole numbers as ids, got {k.dtype('Ids')}")
    if not keeps_last:
        if ids[-1:] not in ([1], [-1]):
            k.fail(f"expected ids of shape [..., 1], got {ids}: fluid.embedding and paddle.nn.Embedding take any")
        ids.pop()
    return ids + [table[1]]


def infer_table_grad(k):
    """As the table; rows where the op is sparse, of no known height where the table has one for ``any_id``."""
    meta = k.meta_of(k.attrs[FORWARD]["W"][0])
    shape = (arrays.ANY_HEIGHT, *meta.shape[1:]) if k.attr("any_id", False) else meta.shape
    k.set("W@GRAD", shape, meta.dtype, lod=(), kind="rows" if k.attr("is_sparse") else "dense")


def line_of(k, ids):
    """The ids in one line, and the call that fills it; None where they lie ready."""
    line = ids.reshape(-1)
    if line.dtype == np.int64:
        return line, None
    kept, xp = k.keep(line.shape, np.int64), k.xp
    return kept, lambda: xp.copyto(kept, line)


def rows_grad(k, line, prepare, padding_idx, height):
    """Let the table's gradient be Rows over the output's gradient; padding's rows are cleared in a copy."""
    dout, xp = k["Out@GRAD"], k.xp
    values = dout.reshape(line.shape[0], dout.shape[-1])
    if padding_idx < 0:
        k.put("W@GRAD", arrays.Rows(line, values, height))
        return prepare
    kept = k.keep(values.shape, values.dtype)
    k.put("W@GRAD", arrays.Rows(line, kept, height))

    def run():
        if prepare is not None:
            prepare()
        xp.copyto(kept, values)
        xp.copyto(kept, 0, where=(line == padding_idx).reshape(-1, 1))
    return run


def fetch_call(k, table, line, rows, padding_idx):
    """The call that brings rows of a DistantTable; on a device by way of the host."""
    xp = k.xp
    held = rows if xp is np else np.empty(rows.shape, rows.dtype)

    def run():
        ids = arrays.to_host(line)
        table.fetch(ids, held)
        if padding_idx >= 0:
            held[ids == padding_idx] = 0
        if held is not rows:
            rows[...] = xp.asarray(held)
    return run


class Lookup:
    """Out[i] = W[Ids[i]]; rows of ``padding_idx`` are zeros and get no gradient."""

    def infer(k):
        """One row for each id, with the ids' sequences."""
        k.set("Out", output_shape(k, k.op.type == "lookup_table_v2"), k.dtype("W"), lod=k.lod("Ids"))

    def run(k):
        table, line, out = k["W"], k["Ids"].reshape(-1), k["Out"]
        rows = out.reshape(line.shape[0], table.shape[1])
        if isinstance(table, arrays.DistantTable):
            return fetch_call(k, table, line, rows, k.attr("padding_idx"))
        return gather_call(k, table, line, rows, f"the table {k.name('W')!r}", k.attr("padding_idx"))

    infer_grad = infer_table_grad

    def grad(k):
        """Rows, or zeros to which rows are added in order."""
        height, width = k.meta("W@GRAD").shape
        if k.attr("is_sparse"):
            line, prepare = line_of(k, k["Ids"])
            return rows_grad(k, line, prepare, k.attr("padding_idx"), height)
        line, dout = k["Ids"].reshape(-1), k["Out@GRAD"].reshape(-1, width)
        return scatter_call(k, k["W@GRAD"], line, dout, "the table's gradient", k.attr("padding_idx"))


op("lookup_table", "W Ids", attrs=LOOKUP, grad_reads="Ids", no_grad="Ids", by_rows="W")(Lookup)
op("lookup_table_v2", "W Ids", attrs=LOOKUP, grad_reads="Ids", no_grad="Ids", by_rows="W")(Lookup)


def ids_count(k):
    """How many ids a batch has."""
    return product(k.shape("Ids"))
