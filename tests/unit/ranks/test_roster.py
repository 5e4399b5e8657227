"""The roster: records of ranks, and the jobs that follow or do not follow from them."""

import itertools

import hypothesis
import pytest
from hypothesis import strategies

from fleet_mpi.errors import EnvironmentProblem, UsageError
from fleet_mpi.ranks import roster
from fleet_mpi.ranks.roster import Record, arrange, decode, describe, encode


def records(*described, **shared):
    """Records in rank order, of (role, index) pairs."""
    return [Record(role, index, host=f"h{rank}", **shared) for rank, (role, index) in enumerate(described)]


def test_a_record_survives_its_bytes():
    record = describe("server", 3, "10.0.0.1:6174", workers=5, servers=["a:1", "b:2", "c:3", "d:4"])
    assert len(encode(record)) == roster.RECORD_BYTES and decode(encode(record), 0) == record
    assert (record.workers, record.servers, record.index, record.listed) == (5, 4, 3, "a:1,b:2,c:3,d:4")


def test_what_a_rank_does_not_know_is_unknown_to_the_others():
    record = decode(encode(describe("worker")), 0)
    assert (record.index, record.workers, record.servers, record.fingerprint, record.endpoint) == (-1, -1, -1, 0, "")


def test_texts_that_do_not_fit_are_cut_and_lists_compared_all_the_same():
    one, other = (describe("worker", servers=[f"host-{number}:6174" for number in range(70)] + [last])
                  for last in ("x", "y"))
    assert len(encode(one)) == roster.RECORD_BYTES
    assert decode(encode(one), 0).listed == decode(encode(other), 0).listed
    assert decode(encode(one), 0).fingerprint != decode(encode(other), 0).fingerprint


@hypothesis.given(strategies.binary(max_size=600))
def test_noise_is_refused_with_the_rank_that_sent_it(noise):
    with pytest.raises(EnvironmentProblem, match="rank 7"):
        decode(noise, 7)


@hypothesis.given(strategies.binary(min_size=472, max_size=472))
def test_noise_after_a_good_beginning_is_a_record_or_refused(noise):
    try:
        assert decode(encode(Record("worker"))[:40] + noise, 7).role in roster.ROLES
    except EnvironmentProblem as problem:
        assert "rank 7" in str(problem)


def test_another_version_of_the_package_is_refused():
    with pytest.raises(EnvironmentProblem, match="rank 2 runs fleet_mpi '0.0.9'.*same version"):
        decode(encode(Record("worker", version="0.0.9")), 2)


def test_numbers_that_were_not_given_follow_the_ranks():
    members, warnings = arrange(records(("server", -1), ("worker", -1), ("server", -1), ("worker", -1)))
    assert [(member.role, member.index) for member in members] == [("server", 0), ("worker", 0), ("server", 1),
                                                                   ("worker", 1)]
    assert not warnings


def test_numbers_that_were_given_stand_whatever_the_ranks():
    members, _ = arrange(records(("worker", 1), ("worker", -1), ("worker", 0), ("server", 0)))
    assert [member.index for member in members] == [1, 2, 0, 0]


def test_a_label_that_was_not_given_is_host_and_rank_so_two_servers_of_a_host_differ():
    """B4: no ports, nothing drawn at random."""
    members, _ = arrange([Record("server", host="h"), Record("server", host="h"),
                          Record("worker", host="h", endpoint="w:1")])
    assert [member.endpoint for member in members] == ["h:0", "h:1", "w:1"]


def test_a_role_and_number_twice_names_both_ranks():
    with pytest.raises(UsageError, match=r"rank 1 \(host h1\) and rank 3 \(host h3\) both say that they are worker 1"):
        arrange(records(("server", 0), ("worker", 1), ("worker", 0), ("worker", 1)))


@pytest.mark.parametrize("field, said", (("workers", "worker"), ("servers", "server")))
def test_beliefs_that_differ_are_refused_naming_both(field, said):
    told = [Record("worker", host="a", **{field: 2}), Record("server", host="b", **{field: 3})]
    with pytest.raises(UsageError,
                       match=rf"rank 0 \(host a\) describes a job with 2 {said}\(s\), rank 1 \(host b\) one with 3"):
        arrange(told)


@pytest.mark.parametrize("roles, workers, servers, said", (
    ("wws", 3, 1, r"describes a job with 3 worker\(s\), but 2 of the 3 processes .*\(ranks 0, 1\)"),
    ("wwws", 2, 1, r"describes a job with 2 worker\(s\), but 3 of the 4 processes"),
    ("ww", 2, 1, r"describes a job with 1 server\(s\), but 0 of the 2 processes .*\(none\)"),
    ("wss", 1, 1, r"describes a job with 1 server\(s\), but 2 of the 3 processes")))
def test_a_world_of_another_size_than_the_job_is_refused(roles, workers, servers, said):
    told = [Record({"w": "worker", "s": "server"}[role], host="h", workers=workers, servers=servers) for role in roles]
    with pytest.raises(UsageError, match=said):
        arrange(told)


def test_a_number_out_of_range_is_refused():
    with pytest.raises(UsageError,
                       match=r"rank 1 \(host h1\) says that it is worker 5, but there are 2, numbered from 0"):
        arrange(records(("worker", 0), ("worker", 5)))


@pytest.mark.parametrize("role, index, counts",
                         (("worker", 2, dict(workers=2)), ("worker", 1, dict(workers=1, servers=2)),
                          ("worker", -1, dict(workers=2)), ("server", 2, dict(servers=["a:1", "b:1"]))))
def test_a_number_that_a_rank_itself_can_refuse_is_refused_there(role, index, counts):
    with pytest.raises(UsageError, match=f"says that it is {role} {index}, but there are .*numbered from 0"):
        describe(role, index, **counts)


def test_lists_of_equal_length_map_by_order_with_a_warning():
    """Seed 002: the server says 192.168.1.2, the workers say 192.168.1.3."""
    told = [describe("server", 0, "192.168.1.2:6174", 1, ["192.168.1.2:6174"]),
            describe("worker", 0, "", 1, ["192.168.1.3:6174"])]
    members, (warning,) = arrange(told)
    assert members[0].endpoint == "192.168.1.2:6174"
    assert "192.168.1.2:6174, rank 1 as 192.168.1.3:6174" in warning and "taken in order" in warning


@pytest.mark.parametrize("field, values",
                         (("threads", (1, 2)), ("numpy", ("2.4.0", "2.4.1")), ("python", ("3.11.2", "3.12.0"))))
def test_machines_that_differ_are_warned_of(field, values):
    members, (warning,) = arrange([Record("worker", **{field: value}) for value in values])
    assert len(members) == 2 and str(values[0]) in warning and f"rank 1 {values[1]}" in warning


def test_all_descriptions_of_small_worlds_give_each_role_the_numbers_from_0():
    for roles in itertools.product(roster.ROLES, repeat=4):
        members, _ = arrange(records(*((role, -1) for role in roles)))
        for role in roster.ROLES:
            numbers = [member.index for member in members if member.role == role]
            assert numbers == list(range(roles.count(role)))


def test_an_unknown_role_is_refused():
    with pytest.raises(UsageError, match="expected role 'worker' or 'server', got 'boss'"):
        describe("boss")
