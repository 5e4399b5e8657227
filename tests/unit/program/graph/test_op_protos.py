"""The op table as records."""

import pytest

from fleet_mpi.program.graph import registry
from fleet_mpi.program.graph.op_protos import OpProtoHolder


def test_an_op_is_described_by_its_slots_and_attributes():
    proto = OpProtoHolder.instance().get_op_proto("concat")
    assert proto.type == "concat" and [(one.name, one.duplicable) for one in proto.inputs][0] == ("X", True)
    assert [one.name for one in proto.outputs] == ["Out"]
    assert "axis" in [one.name for one in proto.attrs]


def test_all_ops_are_there_and_an_unknown_one_is_refused_with_the_nearest():
    holder = OpProtoHolder.instance()
    assert holder is OpProtoHolder.instance() and sorted(holder.op_proto_map) == registry.all_types()
    assert holder.has_op_proto("relu") and not holder.has_op_proto("rely")
    assert "op_role" in holder.generated_op_attr_names()
    with pytest.raises(ValueError, match="no op is called 'reluu'; did you mean 'relu'"):
        holder.get_op_proto("reluu")
