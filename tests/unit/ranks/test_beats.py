"""Machines that beat live; one that is silent for the deadline is named, with the ranks that run there."""

import pytest

from fleet_mpi import settings
from fleet_mpi.errors import Stalled
from fleet_mpi.ranks import beats
from fleet_mpi.ranks.roster import Member

MEMBERS = [Member(0, "server", 0, "", "a"), Member(1, "worker", 0, "", "a"), Member(2, "worker", 1, "", "b"),
           Member(3, "worker", 2, "", "b"), Member(4, "worker", 3, "", "c")]


class Done:
    """A request that is over, or one that receives from a queue."""

    def __init__(self, queue=None, word=None):
        self.queue, self.word, self.is_over = queue, word, queue is None

    def Test(self):
        """As MPI's."""
        if not self.is_over and self.queue:
            self.word[...] = self.queue.pop(0)
            self.is_over = True
        return self.is_over

    def Cancel(self):
        """As MPI's."""
        self.is_over = True


class Comm:
    """The communicator of one rank: messages wait in {(from, to): queue}."""

    def __init__(self, rank, queues):
        self.rank, self.queues = rank, queues

    def Isend(self, word, rank, tag):
        """At once."""
        self.queues.setdefault((self.rank, rank), []).append(word.copy())
        return Done()

    def Irecv(self, word, rank, tag):
        """When it comes."""
        return Done(self.queues.setdefault((rank, self.rank), []), word)


class Clock:
    """Time that a test moves."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def machines():
    """The beats of the first ranks of three machines, by rank, and their clock."""
    queues, clock, hosts = {}, Clock(), beats.first_ranks(MEMBERS)
    with settings.override(FLAGS_rpc_deadline=8000):
        yield {rank: beats.Beats(Comm(rank, queues), hosts, clock) for rank in hosts}, clock


def pass_time(ranks, machines, clock, seconds):
    """Let some machines beat for so long."""
    for _ in range(int(seconds)):
        clock.now += 1
        for rank in ranks:
            machines[rank].turn()


def test_the_first_rank_of_each_machine_beats():
    assert {rank: len(there) for rank, there in beats.first_ranks(MEMBERS).items()} == {0: 2, 2: 2, 4: 1}


def test_machines_that_beat_are_never_named(machines):
    machines, clock = machines
    pass_time((0, 2, 4), machines, clock, 100)
    assert all(len(queue) <= 2 for queue in machines[0].comm.queues.values())  # nothing piles up


def test_a_silent_machine_is_named_with_its_ranks(machines):
    machines, clock = machines
    pass_time((0, 2, 4), machines, clock, 20)
    with pytest.raises(Stalled, match=r"host b for 8 s.*worker 1 \(rank 2, host b\), worker 2 \(rank 3, host b\)"):
        pass_time((0, 4), machines, clock, 12)


def test_the_others_name_the_first_machine(machines):
    machines, clock = machines
    pass_time((0, 2, 4), machines, clock, 20)
    with pytest.raises(Stalled, match=r"host a for 8 s"):
        pass_time((2,), machines, clock, 12)


def test_one_that_stood_still_itself_names_nobody(machines):
    machines, clock = machines
    pass_time((0, 2, 4), machines, clock, 20)
    clock.now += 1000
    pass_time((0, 2, 4), machines, clock, 20)


def test_at_the_end_nothing_is_left_behind(machines):
    machines, clock = machines
    pass_time((0, 2, 4), machines, clock, 5)
    for one in machines.values():
        one.thread.start()
        one.stopping.set()
        one.thread.join()
        one._send(beats._LAST)
    for one in machines.values():
        one._take()
        assert not one.coming
    assert not any(machines[0].comm.queues.values())
