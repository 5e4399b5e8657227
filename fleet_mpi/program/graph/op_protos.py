"""``OpProtoHolder``: the op table as scripts of the original ask for it, a record per op type."""

from typing import NamedTuple

from fleet_mpi.errors import ProgramError, nearest
from fleet_mpi.program.graph import registry
from fleet_mpi.program.graph.operator import ROLE, ROLE_VAR, SCOPE


class SlotProto(NamedTuple):
    """An input or output: whether it takes a list of variables, and whether it may be left out."""

    name: str
    duplicable: bool
    dispensable: bool


class AttrProto(NamedTuple):
    """An attribute and the value it has where none is given."""

    name: str
    default: object


class OpProto(NamedTuple):
    """What an op reads, writes and is told."""

    type: str
    inputs: tuple
    outputs: tuple
    attrs: tuple


class OpProtoHolder:
    """All op types; ``instance()`` gives the one holder there is."""

    _instance = None

    @classmethod
    def instance(cls):
        """The holder of this process."""
        cls._instance = cls._instance or cls()
        return cls._instance

    @property
    def op_proto_map(self):
        """{type: OpProto} of all ops."""
        return {type: self.get_op_proto(type) for type in registry.all_types()}

    def get_op_proto(self, type):
        """The record of one op type."""
        if not registry.is_known(type):
            raise ProgramError(f"no op is called {type!r}; {nearest(type, registry.all_types())}")
        known = registry.find(type)
        return OpProto(type, _slots(known.inputs), _slots(known.outputs),
                       tuple(AttrProto(name, default) for name, default in known.attrs.items()))

    def has_op_proto(self, type):
        """Whether there is an op of this type."""
        return registry.is_known(type)

    @staticmethod
    def generated_op_attr_names():
        """The attributes that every op gets by itself."""
        return {ROLE, ROLE_VAR, SCOPE}


def _slots(marks):
    return tuple(SlotProto(name, mark == "*", mark == "?") for name, mark in marks.items())
