"""Slurm's short lists of nodes."""

import pytest

from fleet_mpi.errors import EnvironmentProblem
from fleet_mpi.launch.nodelist import expanded, nodes


@pytest.mark.parametrize("short, names", (
    ("", ""), ("n1", "n1"), ("n[1-3]", "n1 n2 n3"), ("n[1,3-4],m", "n1 n3 n4 m"),
    ("gpu[08-10]x,k2", "gpu08x gpu09x gpu10x k2"),
    ("rack[1-2]node[01-02]", "rack1node01 rack1node02 rack2node01 rack2node02"),
    ("a[1,3]b[2]c,d-[9-11].x", "a1b2c a3b2c d-9.x d-10.x d-11.x"), ("[1-2]", "1 2")))
def test_slurms_short_lists_of_nodes(short, names):
    assert expanded(short) == tuple(names.split())


@pytest.mark.parametrize("short", ("n[a-b]", "n[1-", "n1]", "n[1-2]],m", "n[]", "n[1,]", "n[1-2-3]", "a,,b"))
def test_a_list_that_makes_no_sense_is_refused(short):
    with pytest.raises(EnvironmentProblem) as caught:
        expanded(short)
    assert str(caught.value).startswith(f"SLURM_JOB_NODELIST={short}: expected names like n[1-4,7],rack")


def test_slurm_is_asked_where_it_is(tmp_path):
    scontrol = tmp_path / "scontrol"
    scontrol.write_text('#!/bin/sh\n[ "$*" = "show hostnames odd[1-2]" ] && echo first && echo second\n')
    scontrol.chmod(0o755)
    assert nodes("odd[1-2]", str(scontrol)) == ("first", "second")
    assert nodes("n[1-2]", str(scontrol)) == ("n1", "n2")  # it fails: by the rules known here
    assert nodes("n[1-2]", "/no/such/scontrol") == ("n1", "n2") and nodes("", str(scontrol)) == ()
