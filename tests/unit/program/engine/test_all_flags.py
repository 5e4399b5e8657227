"""``core.globals()``: flags by name, to read and to set."""

import pytest

from fleet_mpi import fluid
from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine import flags


def test_flags_are_read_and_set_by_name(monkeypatch):
    monkeypatch.setattr(flags, "_without_effect", {})
    found = fluid.core.globals()
    assert "FLAGS_rpc_deadline" in found and found["FLAGS_rpc_deadline"] == fluid.get_flags("FLAGS_rpc_deadline")[
        "FLAGS_rpc_deadline"]
    found["FLAGS_cudnn_deterministic"] = True
    assert found["FLAGS_cudnn_deterministic"] is True and len(found) == len(list(found))
    with pytest.raises(KeyError):
        found["FLAGS_no_such"]
    with pytest.raises(UsageError, match="set, not removed"):
        del found["FLAGS_rpc_deadline"]
