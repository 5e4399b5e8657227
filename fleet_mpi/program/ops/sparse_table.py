"""A table for any 64-bit ids: a row is made when its id is first met, and the table grows as needed.

Beside the table W lie ``Keys``, the id in each row, and ``Index``, which finds it (kernels/reference/slots.py); all
three are persistable, so saving them saves the table. An id's first values are drawn by counter from
(seed, name of the table, id): the order in which ids come does not matter. A gradient names rows, not
ids, so every optimizer serves; states of the table's shape grow along. The last row is never given
away: what it holds is what the states of a fresh row hold.
"""

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.kernels.reference import random, slots
from fleet_mpi.program.engine.randomness import program_seed
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.embedding import fetch_call, ids_count, infer_table_grad, line_of, output_shape, rows_grad
from fleet_mpi.program.ops.indexing import gather_call

ATTRS = {"is_sparse": True, "is_distributed": True, "is_test": False, "padding_idx": None, "entry": "none",
         "version": "", "init_type": "fill_constant", "init_from": 0.0, "init_to": 0.0, "init_seed": 0}
# Names of the variables beside a table: the table's name and these.
KEYS, INDEX = "@KEYS", "@INDEX"
DRAWN_BY = {"uniform_random": random.uniform, "gaussian_random": random.normal,
            "truncated_gaussian_random": random.truncated_normal}


class Room:
    """Called before every run: makes the table as large as all its lookups of one run may need."""

    def __init__(self, k):
        self.program, self.scope = k.program, k.scope
        self.table, self.keys, self.index = k.name("W"), k.name("Keys"), k.name("Index")
        self.needed = 0

    def __call__(self):
        """Grow; True if an array was replaced."""
        capacity = len(self.scope.array(self.keys))
        wanted = slots.used(self.scope.array(self.index)) + self.needed + 1
        target = capacity if wanted <= capacity else max(wanted, 2 * capacity)
        names = [self.table, *states_of(self.program, self.table)]
        grown = [lengthen(self.scope.find_var(name), target) for name in names]
        if target > capacity:
            self._grow_keys(target)
        return target > capacity or any(grown)

    def _grow_keys(self, target):
        """Enter all ids anew, in the order of their slots, so that these stay."""
        keys, index = (self.scope.find_var(name) for name in (self.keys, self.index))
        old, xp = keys.tensor.array[:slots.used(index.tensor.array)], arrays.module_of(keys.tensor.array)
        new = arrays.empty((target,), np.int64, xp), arrays.empty((slots.index_size(target),), np.int64, xp)
        new[0].fill(slots.FREE)
        new[1].fill(slots.NOT_THERE)
        slots.find_slots(old, *new, xp.empty_like(old), True)
        keys.put(new[0])
        index.put(new[1])


def states_of(program, table):
    """The optimizer's variables that have a row for each row of a table."""
    block, names = program.global_block(), []
    shape = block.var(table).shape
    for one in block.ops:
        if table in one.input("Param"):
            names += [name for name in one.input_arg_names if name != table and block.has_var(name)
                      and block.var(name).persistable and block.var(name).shape == shape]
    return list(dict.fromkeys(names))


def growing_variables(program):
    """The names of all variables of a program whose first size changes as it runs: it is only where they start."""
    names = set()
    for one in program.global_block().ops:
        if one.type == "sparse_table_lookup":
            table, = one.input("W")
            names.update([table, *one.input("Keys"), *one.input("Index"), *states_of(program, table)])
    return names


def lengthen(holder, rows):
    """Give a variable so many rows, new ones like its last; whether it had fewer."""
    old = holder.tensor.array if holder is not None else None
    if old is None or len(old) >= rows:
        return False
    new = arrays.empty((rows,) + tuple(old.shape[1:]), old.dtype, arrays.module_of(old))
    new[:len(old)] = old
    new[len(old):] = old[len(old) - 1:]
    holder.put(new)
    return True


def room_for(k):
    """Ask for room for this op's ids, together with other lookups of the same table."""
    mine = [one for one in k.frame.before_run if isinstance(one, Room) and one.table == k.name("W")]
    room = mine[0] if mine else Room(k)
    room.needed += ids_count(k)
    if not mine:
        k.before_run(room)


def initializer(k, table):
    """The call (first slot, end, keys) that gives rows their first values."""
    kernel = DRAWN_BY.get(k.attr("init_type"))
    one, other = float(k.attr("init_from")), float(k.attr("init_to"))
    if kernel is None:
        return lambda first, end, keys: table[first:end].fill(one)
    seed = k.attr("init_seed") or program_seed(k.program)
    key, draw = random.key_of(seed, k.name("W")), kernel.pick(table)

    def run(first, end, keys):
        ids = arrays.to_host(keys[first:end]).tolist()
        for slot, number in enumerate(ids, first):
            draw(table[slot], key, number % slots.TWO_TO_64, 0, one, other)
    return run


@op("sparse_table_lookup", "W Ids Keys Index", "Out Slots KeysOut IndexOut", attrs=ATTRS, grad_reads="Slots",
    no_grad="Ids Keys Index", by_rows="W")
class SparseTableLookup:
    """Out[i] = the row of Ids[i], made if it is new; in tests, and for ``padding_idx``, zeros instead."""

    def infer(k):
        """A row for each id; Slots says which."""
        keeps_last = k.attr("version") == "lookup_table_v2" or k.shape("Ids")[-1:] != (1,)
        k.set("Out", output_shape(k, keeps_last), k.dtype("W"), lod=k.lod("Ids"))
        k.set("Slots", [ids_count(k)], np.int64, lod=())
        k.set("KeysOut", k.shape("Keys"), np.int64, lod=())
        k.set("IndexOut", k.shape("Index"), np.int64, lod=())

    def run(k):
        """Find slots, draw the new rows, copy all."""
        is_test, padding = k.attr("is_test"), k.attr("padding_idx")
        if isinstance(k["W"], arrays.DistantTable):
            rows = k["Out"].reshape(-1, k["W"].shape[1])
            return fetch_call(k, k["W"], k["Ids"].reshape(-1), rows, -1 if padding is None else padding)
        if not is_test:
            room_for(k)
        table, keys, index, out, found, xp = k["W"], k["Keys"], k["Index"], k["Out"], k["Slots"], k.xp
        line, prepare = line_of(k, k["Ids"])
        spare, first_values = table.shape[0] - 1, initializer(k, table)
        gather = gather_call(k, table, found, out.reshape(line.shape[0], table.shape[1]), "the table", spare)

        def run():
            if prepare is not None:
                prepare()
            before = slots.used(index)
            count = slots.find_slots(line, keys, index, found, not is_test)
            if count > before:
                first_values(before, count, keys)
            if is_test:
                xp.copyto(found, spare, where=found < 0)
            if padding is not None:
                xp.copyto(found, spare, where=line == padding)
            gather()
        return run

    infer_grad = infer_table_grad

    def grad(k):
        """Rows by slot; the spare row, standing for padding, gets none."""
        height = k.meta("W@GRAD").shape[0]
        return rows_grad(k, k["Slots"], None, height - 1 if k.attr("padding_idx") is not None else -1, height)
