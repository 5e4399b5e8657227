"""``fleet.util``: with a fleet's role or one's own, and the programs that it looks at."""

import pytest

from fleet_mpi import fluid
from fleet_mpi.errors import UsageError
from fleet_mpi.fleet.role_makers import MockBarrier, Role, UserDefinedRoleMaker, UserDefinedRoleMaker2
from fleet_mpi.fleet.together import Util, UtilFactory


def test_a_util_takes_a_role_maker():
    role = UserDefinedRoleMaker2(current_id=1, role=Role.WORKER, worker_num=2, server_endpoints=["a:1"])
    util = UtilFactory()._create_util({"role_maker": role, "valid_strategy": "some"})
    assert util.get_file_shard(["a", "b", "c"]) == ["c"] and util._strategy == "some"
    with pytest.raises(UsageError, match="comm_world: expected worker, server or all"):
        util.barrier("nobody")
    with pytest.raises(UsageError, match="_set_role_maker"):
        Util().barrier()


def test_a_util_reads_and_draws_programs(tmp_path):
    fluid.layers.mean(fluid.data("x", [None, 2]))
    util = Util()
    util._save_program(fluid.default_main_program(), str(tmp_path / "main"))
    assert str(util._load_program(str(tmp_path / "main"), False)) == str(fluid.default_main_program())
    assert util._program_type_trans(str(tmp_path), "main", False) == "main.pbtxt"
    util._visualize_graphviz(fluid.default_main_program(), str(tmp_path), "drawn")
    assert "mean" in (tmp_path / "drawn.dot").read_text()


def test_one_process_does_things_together_with_nobody():
    mock = MockBarrier()
    mock.barrier(), mock.barrier_all(), mock.barrier_worker()
    assert mock.all_reduce(3) == 3 and mock.all_gather(3) == [3]


def test_a_role_maker_says_who_it_is():
    role = UserDefinedRoleMaker(current_id=1, role=Role.SERVER, worker_num=1, server_endpoints=["a:1", "b:2"])
    assert role._role_id() == 1 and role.get_local_endpoint() == "b:2"
    assert role._heter_worker_num() == 0 and role._is_heter_worker() is False
    assert role._get_rank() == 0 and role._get_size() == 1
    alone = UserDefinedRoleMaker(current_id=0, role=Role.WORKER, worker_num=1, server_endpoints=["a:1"])
    assert alone._is_non_distributed() and alone._node_num() == 1 and alone.get_local_endpoint() == ""
