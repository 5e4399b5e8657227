"""How much memory a server may give to a table: the smallest limit of its control groups, and of the machine."""

from fleet_mpi.parameter_server.tables.growing import budget, memory


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_limits_of_a_group_and_of_those_around_it_count_in_both_versions_of_groups(tmp_path):
    write(tmp_path / "groups", "7:cpu:/other\n4:memory:/slurm/job_1\n1:name=systemd:/\n0::/user/one\n")
    root = tmp_path / "root"
    write(root / "memory/slurm/job_1/memory.limit_in_bytes", "1000\n")
    write(root / "memory/memory.limit_in_bytes", "9223372036854771712\n")
    write(root / "user/one/memory.max", "max\n")
    write(root / "user/memory.max", "3000\n")
    assert sorted(budget.group_limits(str(tmp_path / "groups"), str(root))) == [1000, 3000, 9223372036854771712]


def test_no_groups_set_no_limit(tmp_path):
    assert not list(budget.group_limits(str(tmp_path / "none"), str(tmp_path)))


def test_a_server_has_its_share_of_the_machine():
    assert 0 < budget.server_bytes() <= memory.physical_bytes()
