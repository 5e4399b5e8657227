"""Hosts that cannot be reached are named, with the cause."""

import subprocess

from fleet_mpi.launch.job import Allocation, parse
from fleet_mpi.launch.reaching import problem

HERE = Allocation(names=("here",))


def asked(answers):
    """What stands for ssh: (exit code, stderr) by host; and the words it was asked with."""
    words = []

    def run(command, **_):
        words.append(command)
        code, said = answers[command[-2]]
        return subprocess.CompletedProcess(command, code, "", said)
    return run, words


def test_hosts_that_do_not_answer_are_named_with_what_ssh_says():
    job = parse(["--ips", "here,b,c", "--nproc_per_node", "2", "train.py"], HERE)
    run, words = asked({"b": (0, ""), "c": (255, "ssh: Could not resolve hostname c: Name or service not known\r\n")})
    said = str(problem(job, HERE, run))
    assert said.startswith("no rank was started: c cannot be reached from here by ssh: ssh: Could not resolve hostname "
                           "c: Name or service not known. Are the names right")
    assert [command[0] for command in words] == ["ssh", "ssh"] and "BatchMode=yes" in words[0]


def test_where_all_answer_there_is_no_problem():
    run, words = asked({"b": (0, "a banner"), "c": (0, "")})
    assert problem(parse(["--ips", "b,c", "--nproc_per_node", "1", "--rsh", "mine", "train.py"], HERE), HERE,
                   run) is None
    assert words == [["mine", "b", "true"], ["mine", "c", "true"]]


def test_a_program_that_is_not_there_is_a_cause():
    job = parse(["--ips", "b,c", "--nproc_per_node", "1", "--rsh", "/no/such/rsh", "train.py"], HERE)
    assert "No such file or directory: '/no/such/rsh'" in str(problem(job, HERE))
