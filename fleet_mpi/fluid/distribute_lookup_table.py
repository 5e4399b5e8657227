"""``fluid.distribute_lookup_table``: the embedding of a program whose rows servers keep."""

from fleet_mpi.errors import UsageError as _UsageError
from fleet_mpi.errors import missing_name as _missing_name

LOOKUP_TABLE_TYPE = "lookup_table"


def find_distributed_lookup_table(program):
    """The name of the one table that ``is_distributed``, or None."""
    names = sorted({op.input("W")[0] for op in _lookups(program)})
    if len(names) > 1:
        raise _UsageError(f"find_distributed_lookup_table: expected one distributed table, got {', '.join(names)}")
    return names[0] if names else None


def find_distributed_lookup_table_inputs(program, table_name):
    """The variables with ids for a distributed table."""
    return _variables(program, "Ids", table_name)


def find_distributed_lookup_table_outputs(program, table_name):
    """The variables with rows of a distributed table."""
    return _variables(program, "Out", table_name)


def _lookups(program):
    return [op for op in program.global_block().ops
            if op.type in (LOOKUP_TABLE_TYPE, "lookup_table_v2") and op.attr("is_distributed")]


def _variables(program, slot, table_name):
    block = program.global_block()
    return [block.vars[name] for op in _lookups(program) if op.input("W")[0] == table_name
            for name in (op.output if slot == "Out" else op.input)(slot)]


__getattr__ = _missing_name("paddle.fluid.distribute_lookup_table", globals())
