"""Workers without servers come to the bits of one process that sums, whatever way their gradients take."""

import numpy as np
import pytest

import fleet_mpi.fluid as fluid
from fleet_mpi.collective import exact
from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.runtime.collective_sessions import connect, session_of
from fleet_mpi.wire.loopback import Network
from tests.exact.averaging import differences, digest, plain
from tests.exact.cells import CELLS, feed_of
from tests.exact.summing import summed
from tests.exact.threads_as_workers import as_workers
from tests.exact.together import Together, over_loopback, ways
from tests.unit.program.building import from_scratch

# Those in which workers have as many batches each: others are an error in a job without servers.
EVEN = {name: cell for name, cell in CELLS.items() if not cell.ends}
CELL = EVEN["clip by global norm"]


@pytest.mark.parametrize("name", EVEN)
def test_workers_give_the_bits_of_one_process(name, monkeypatch):
    number = list(EVEN).index(name)
    workers = 1 + number % 5
    monkeypatch.setattr(exact, "SMALLEST", (1 << 12, 64)[number % 2])
    jobs, _ = over_loopback(EVEN[name], workers, **ways(number))
    assert not differences(jobs[0].state(), summed(EVEN[name], workers))
    assert {digest(job.parameters()) for job in jobs} == {digest(jobs[0].parameters())}


def test_one_worker_gives_the_bits_of_the_script_itself():
    assert not differences(over_loopback(EVEN["rows, adam"], 1)[0][0].state(), plain(EVEN["rows, adam"]))


@pytest.mark.parametrize("chunk", (1 << 12, 1 << 19))
def test_no_option_changes_the_bits(chunk, monkeypatch):
    monkeypatch.setattr(exact.ExactAllReduce.__init__, "__defaults__", (chunk, None))
    monkeypatch.setattr(exact, "DIRECT", 0)
    found = {digest(over_loopback(CELL, 3, fuse_mb=fuse, last_mb=last, comms=comms)[0][2].state())
             for fuse, last in ((32, 1), (0, 0), (0.1, 0.01)) for comms in (1, 2)}
    assert found == {digest(summed(CELL, 3))}


# ---------------------------------------------------------------------- what each option does

def messages(network):
    """How many parts were sent over a network: one per bucket and other worker, where buckets are one chunk."""
    return sum(count for (_, _, channel), count in network.sent.items() if channel == Channel.PART)


def test_buckets_are_fewer_messages_than_gradients(monkeypatch):
    monkeypatch.setattr(exact, "SMALLEST", 1 << 30)
    monkeypatch.setattr(exact.ExactAllReduce.__init__, "__defaults__", (1 << 30, None))
    monkeypatch.setattr(exact, "DIRECT", 0)
    sent = {}
    for fuse, last in ((32, 32), (32, 0.0001), (0, 0)):
        jobs, (network,) = over_loopback(EVEN["sgd"], 2, fuse_mb=fuse, last_mb=last)
        assert messages(network) == 3 * len(jobs[0].plan.buckets)  # steps
        sent[fuse, last] = len(jobs[0].plan.buckets)
    assert sent == {(32, 32): 1, (32, 0.0001): 2, (0, 0): 4}


def test_buckets_take_turns_on_the_communicators(monkeypatch):
    monkeypatch.setattr(exact, "DIRECT", 0)
    jobs, networks = over_loopback(EVEN["sgd"], 2, fuse_mb=0, last_mb=0, comms=3)
    assert len(jobs[0].plan.buckets) == 4
    shares = [messages(network) for network in networks]
    assert all(shares) and shares[0] > shares[2]    # buckets 0 and 3 go over the first
    (_, (alone,)) = over_loopback(EVEN["sgd"], 2, fuse_mb=0, last_mb=0)
    assert sum(shares) == messages(alone)


def test_sums_by_node_give_the_bits_of_their_order(capsys):
    jobs, (network,) = over_loopback(CELL, 4, by_node=True, node_ranks=2)
    state = jobs[3].state()
    assert not differences(state, summed(CELL, 4, nodes=[[0, 1], [2, 3]]))
    assert differences(state, summed(CELL, 4))
    assert not [key for key in network.sent if {key[0], key[1]} in ({0, 3}, {1, 2}) and key[2] == Channel.PART]
    assert "exact (within 2 nodes, then between them)" in capsys.readouterr().err


def test_one_node_has_no_nodes_and_says_so_once(capsys):
    jobs, _ = over_loopback(CELL, 2, by_node=True)
    assert capsys.readouterr().err.count("hierarchical all-reduce is off: all workers are on one node") == 1
    assert not differences(jobs[0].state(), summed(CELL, 2))


def test_workers_that_do_not_make_nodes_are_refused():
    with pytest.raises(UsageError, match="3 workers do not make nodes of 2"):
        over_loopback(CELL, 3, by_node=True, node_ranks=2)


# ---------------------------------------------------------------------- what scripts do with programs and scopes

WORKERS = 2


def in_step(work):
    """Run ``work(group)`` as every worker; returns what each returned."""
    return as_workers(WORKERS, [Network()], work)


class Script:
    """A worker with a program, and what scripts do with it."""

    def __init__(self, job, group, scope=None):
        self.job, self.group, self.scope, self.executor = job, group, scope or Scope(), Executor()
        self.executor.worker = group.index
        self.session = connect(job.plan, self.scope, group)

    def start(self):
        """Run the startup program."""
        connect(self.job.plan, self.scope, self.group)
        self.executor.run(self.job.made.startup, scope=self.scope)
        return self

    def step(self, number, program=None):
        """One step."""
        main = self.job.made.main
        return self.executor.run(program or main, feed=feed_of(main, self.group.index, number),
                                 fetch_list=[self.job.made.loss], scope=self.scope)[0]

    def state(self):
        """Of the parameters."""
        return {name: self.scope.array(name).copy() for name in sorted(self.job.trained)}


@pytest.fixture
def job():
    """A cell's programs for two workers."""
    return Together(EVEN["momentum"], WORKERS)


def trained(job, between=lambda script, number: None):
    """The workers' parameters after three steps; ``between(script, step)`` is called before each."""
    def work(group):
        script = Script(job, group).start()
        for number in range(3):
            between(script, number)
            script.step(number)
        return script.state()
    first, second = in_step(work)
    assert not differences(first, second)
    return first


@pytest.fixture
def right(job):
    """What undisturbed training gives."""
    return trained(job)


def test_a_gradient_that_a_script_replaces_is_summed_all_the_same(job, right):
    def replace(script, number):
        if number == 1 and script.group.index == 0:
            name = job.plan.gradients[0].name
            script.scope.var(name).put(np.full(script.scope.array(name).shape, 7, "float32"))
    assert not differences(trained(job, replace), right)


def test_a_parameter_that_a_script_replaces_is_trained_on(job, right):
    def replace(script, number):
        for name in job.trained if number == 2 else ():
            script.scope.var(name).put(script.scope.array(name).copy())
    assert not differences(trained(job, replace), right)


def test_the_startup_program_may_run_again_and_all_begin_anew_with_the_same(job):
    def restart(group):
        script = Script(job, group).start()
        script.step(0)
        before = script.state()
        script.start()
        begun = script.state()
        script.step(1)
        return begun, script.state(), bool(differences(before, begun))
    (begun, ended, is_new), (other_begun, other_ended, _) = in_step(restart)
    assert is_new and not differences(begun, other_begun) and not differences(ended, other_ended)
    assert differences(begun, ended)


def test_a_program_trains_in_two_scopes_in_turns(job, right):
    def work(group):
        scripts = [Script(job, group).start(), Script(job, group).start()]
        assert scripts[0].session is not scripts[1].session
        for number in range(3):
            for script in scripts:
                script.step(number)
        return [script.state() for script in scripts]
    for one, other in in_step(work):
        assert not differences(one, right) and not differences(other, right)


def test_a_scope_within_another_shares_its_session(job):
    def work(group):
        script = Script(job, group).start()
        inner = script.scope.new_scope()
        script.executor.run(job.made.main, feed=feed_of(job.made.main, group.index, 0), scope=inner)
        assert session_of(inner) is script.session and script.session.steps == 1
        return script.state()
    assert not differences(*in_step(work))


def test_two_programs_take_turns_in_one_scope(right, job):
    with from_scratch():
        other = Together(EVEN["rows, adam"], WORKERS)
    alone = trained(other)

    def work(group):
        scope = Scope()
        # Names of the two programs' parameters differ but for the last layer, which each starts for itself.
        scripts = [Script(job, group, scope).start(), Script(other, group, Scope()).start()]
        sessions = [script.session for script in scripts]
        for number in range(3):
            for script in scripts:
                script.step(number)
        assert [connect(script.job.plan, script.scope) for script in scripts] == sessions
        return [script.state() for script in scripts]
    for one, two in in_step(work):
        assert not differences(one, right) and not differences(two, alone)


def test_sessions_of_two_plans_in_one_scope_are_both_kept(job):
    second = Together(EVEN["momentum"], WORKERS, fuse_mb=0, last_mb=0)

    def work(group):
        scope = Scope()
        scripts = [Script(one, group, scope).start() for one in (job, second)]
        for number in range(4):
            scripts[number % 2].step(number)
        assert [script.session.steps for script in scripts] == [2, 2]
        assert connect(job.plan, scope) is scripts[0].session
        return scripts[0].state()
    one, other = in_step(work)
    assert not differences(one, other)


def test_a_compiled_program_trains_likewise(job, right):
    compiled = fluid.CompiledProgram(job.made.main).with_data_parallel(loss_name=job.made.loss.name)

    def work(group):
        script = Script(job, group).start()
        for number in range(3):
            script.step(number, compiled)
        return script.state()
    assert not differences(in_step(work)[0], right)


def test_a_copy_of_the_program_trains_likewise(job, right):
    copy = job.made.main.clone()

    def work(group):
        script = Script(job, group).start()
        for number in range(3):
            script.step(number, copy)
        return script.state()
    assert not differences(in_step(work)[0], right)


def test_one_worker_alone_may_test_at_any_time_in_any_scope(job, right):
    """Nothing of it waits for others: not before the first step, nor in a scope that has no part in the job."""
    test = job.made.main.clone(for_test=True)
    pruned = job.made.main._prune([job.made.loss])

    def evaluate(script, number):
        if script.group.index == 0:
            here = script.step(number, test)
            elsewhere = Scope()
            for name, value in script.state().items():
                elsewhere.var(name).put(value)
            for program in (test, pruned):
                there, = script.executor.run(program, feed=feed_of(test, 0, number), fetch_list=[job.made.loss],
                                             scope=elsewhere)
                assert there == here and session_of(elsewhere) is None
    assert not differences(trained(job, evaluate), right)
