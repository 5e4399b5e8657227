"""The lookup in tables that servers keep: the rows of a batch come over the wire, the table never does.

One op serves any number of lookups, of one table or several; ``transpile.lookups`` makes it. Its gradient is the
ordinary lookup's, which needs ids and the rows' gradient only.
"""

import numpy as np

from fleet_mpi.arrays import to_host
from fleet_mpi.program.engine.transfers import side_by_side
from fleet_mpi.program.graph.registry import op
from fleet_mpi.runtime import sessions


@op("distributed_lookup_table", "Ids*", "Outputs*",
    attrs={"table_names": [], "padding_idx": [], "lookup_table_version": []})
class DistributedLookupTable:
    """Outputs[i] = rows of table_names[i] by Ids[i]; those of padding_idx[i] are zeros."""

    def infer(k):
        """One row for each id, with the ids' sequences; the first version replaces a last dimension of 1."""
        for index, (table, version) in enumerate(zip(k.attr("table_names"), k.attr("lookup_table_version"))):
            ids, meta = list(k.shape("Ids", index)), k.meta_of(table)
            if version == "lookup_table":
                ids.pop()
            k.set("Outputs", [*ids, meta.shape[1]], meta.dtype, k.lod("Ids", index), index)

    def run(k):
        """One pull for all; on the host straight into the outputs, on a device with one wait for all ids and one copy
        of all rows, of which the outputs are views."""
        ids, outs, xp = k.all("Ids"), k.all("Outputs"), k.xp
        tables, paddings = k.attr("table_names"), k.attr("padding_idx")
        by_table = {table: [i for i, one in enumerate(tables) if one == table] for table in dict.fromkeys(tables)}
        transfers = None if xp is np else k.frame.notes.transfers
        filled = outs
        if transfers is not None:
            pulled, filled = side_by_side(outs, np.empty)
            there, views = side_by_side(outs, k.keep)
            for i, view in enumerate(views):
                k.put("Outputs", view, i)
        session = sessions.session_of(k.scope)
        if session is None:
            k.fail("this scope is not connected to servers: run the startup program, or fleet.init_worker(), first")
        numbers = {session.table_numbers[table]: members for table, members in by_table.items()}
        into = {number: [filled[i] for i in members] for number, members in numbers.items()}

        def run():
            lines = [to_host(one).reshape(-1) for one in (ids if transfers is None else transfers.bring(ids))]
            session.client.pull_rows(
                {number: np.concatenate([lines[i] for i in members]) for number, members in numbers.items()}, into)
            for line, rows, padding in zip(lines, filled, paddings):
                if padding >= 0:
                    rows.reshape(len(line), -1)[line == padding] = 0
            if transfers is not None:
                transfers.upload(pulled, there)
        return run
