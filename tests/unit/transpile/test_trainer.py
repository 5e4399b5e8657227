"""The worker's programs: the original's op names, in its order, and everything else as it was."""

import pytest

from fleet_mpi import fluid
from fleet_mpi.program.engine.liveness import live_ops

FORWARD = ["mul", "elementwise_add", "tanh", "mul", "elementwise_sub", "square", "mean"]
BACKWARD = ["fill_constant", "mean_grad", "square_grad", "elementwise_sub_grad", "mul_grad", "tanh_grad",
            "elementwise_add_grad", "mul_grad"]
SENT = [*BACKWARD[:5], "send", *BACKWARD[5:7], "send", BACKWARD[7], "send"]


@pytest.mark.parametrize("workers", (1, 2))
def test_gradients_are_sent_where_they_are_made_and_parameters_received_after_a_barrier(
        network, transpiled, op_types, workers):
    fluid.optimizer.SGD(0.1).minimize(network())
    made = transpiled(workers=workers)
    assert op_types(made.trainer) == [*FORWARD, *SENT, "send_barrier", "recv", "recv", "recv", "fetch_barrier"]
    sends = [op for op in made.trainer.global_block().ops if op.type == "send"]
    assert [op.input("X") for op in sends] == [["v@GRAD"], ["b@GRAD"], ["w@GRAD"]]
    assert all(op.attr("epmap") == made.endpoints for op in sends)


def test_a_large_gradient_is_split_and_its_parameter_put_together(network, transpiled, op_types):
    fluid.optimizer.SGD(0.1).minimize(network(1300))
    made = transpiled(servers=2)
    ops = {op.type: op for op in made.trainer.global_block().ops}
    assert ops["split_byref"].output("Out") == ["w@GRAD.block0", "w@GRAD.block1"]
    assert ops["split_byref"].attr("sections") == [7, 6]
    assert ops["send"].input("X") == ["w@GRAD.block0", "w@GRAD.block1"]
    assert ops["send"].attr("epmap") == ops["recv"].attr("epmap")
    assert ops["concat"].input("X") == ["w.block0", "w.block1"] and ops["concat"].output("Out") == ["w"]
    assert op_types(made.trainer)[-8:] == ["split_byref", "send", "send_barrier", "recv", "recv", "recv",
                                           "fetch_barrier", "concat"]


def test_without_slicing_nothing_is_split(network, transpiled, op_types):
    fluid.optimizer.SGD(0.1).minimize(network(1300))
    made = transpiled(servers=2, slice_var_up=False)
    assert not {"split_byref", "concat"}.intersection(op_types(made.trainer))


@pytest.mark.parametrize("options", (dict(sync_mode=False), dict(sync_mode=False, runtime_split_send_recv=True)))
def test_asynchronous_workers_have_no_send_barrier(network, transpiled, op_types, options):
    fluid.optimizer.SGD(0.1).minimize(network())
    found = op_types(transpiled(workers=2, **options).trainer)
    assert "send_barrier" not in found and found.count("send") == found.count("recv") == 3


def test_geo_workers_update_themselves_and_send_parameters(network, transpiled, op_types):
    fluid.optimizer.Adam(0.1).minimize(network())
    made = transpiled(workers=2, sync_mode=False, geo_sgd_mode=True, geo_sgd_need_push_nums=7)
    found = op_types(made.trainer)
    assert found.count("adam") == 3 and found[found.index("send"):] == ["send"] * 3 + ["recv"] * 3
    assert [op.input("X")[0] for op in made.trainer.global_block().ops if op.type == "send"] == ["b", "v", "w"]
    assert "w_moment1_0" in made.startup.global_block().vars


def test_updates_decay_clips_schedules_and_states_are_gone_from_the_worker(network, transpiled, op_types):
    rate = fluid.layers.exponential_decay(0.1, 10, 0.5)
    fluid.optimizer.Adam(rate, regularization=fluid.regularizer.L2Decay(0.1),
                         grad_clip=fluid.clip.GradientClipByGlobalNorm(1.0)).minimize(network())
    made = transpiled(workers=2)
    assert op_types(made.trainer) == [*FORWARD, *SENT, "send_barrier", "recv", "recv", "recv", "fetch_barrier"]
    left = {*made.trainer.global_block().vars, *made.startup.global_block().vars}
    assert not [name for name in left if "moment" in name or "CLIP" in name or "DECAY" in name.replace("@LR_DECAY", "")]


def test_a_rate_that_servers_compute_is_made_where_it_is_fetched_or_read_and_not_shown_otherwise(
        network, transpiled, op_types):
    rate = fluid.layers.exponential_decay(0.1, 10, 0.5)
    fluid.optimizer.SGD(rate).minimize(network())
    fluid.layers.scale(rate, 2.0)
    program = transpiled(workers=2).trainer
    assert op_types(program)[-2:] == ["recv_rate", "scale"] and not program.attachment.made_when_fetched


def test_a_hidden_op_of_a_rate_runs_only_where_the_rate_is_fetched(network, transpiled):
    rate, loss = fluid.layers.exponential_decay(0.1, 10, 0.5), network()
    fluid.optimizer.SGD(rate).minimize(loss)
    program = transpiled(workers=2).trainer
    types = {fetched: [op.type for op in live_ops(one, [fetched])].count("recv_rate")
             for one in (program, program.clone()) for fetched in (loss.name, rate.name)}
    assert types == {loss.name: 0, rate.name: 1}
    assert [op.type for op in live_ops(program.clone(for_test=True), [rate.name])] == []


def test_the_startup_program_ends_with_the_servers_values(network, transpiled, op_types):
    fluid.optimizer.Momentum(0.1, 0.9).minimize(network(1300))
    made = transpiled(servers=2)
    types = op_types(made.startup)
    assert types[-5:] == ["recv", "recv", "recv", "fetch_barrier", "concat"]
    assert set(types[:-5]) == {"fill_constant", "uniform_random"}
    assert not [name for name in made.startup.global_block().vars if "velocity" in name]


def test_rows_are_sent_whole_and_never_received(transpiled, op_types):
    ids, y = fluid.layers.data("ids", [1], dtype="int64"), fluid.layers.data("y", [1])
    found = fluid.layers.embedding(ids, [2000, 10], is_sparse=True, param_attr="table")
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(found, 1), y))
    fluid.optimizer.SGD(0.1).minimize(loss)
    made = transpiled(servers=2)
    assert op_types(made.trainer)[0] == "distributed_lookup_table"
    sent = [op for op in made.trainer.global_block().ops if op.type == "send" and op.attr("table") == "table"]
    assert [op.input("X") for op in sent] == [["table@GRAD"]]
    received = [op.output("Out") for op in made.trainer.global_block().ops if op.type == "recv"]
    assert ["table"] not in received and len(received) == 2
    assert [op.output("Out") for op in made.startup.global_block().ops if op.type == "fake_init"] == [["table"]]


def test_ops_that_follow_the_update_see_the_new_parameters(network, transpiled, op_types):
    fluid.optimizer.SGD(0.1).minimize(network())
    fluid.optimizer.ExponentialMovingAverage(0.9).update()
    types = op_types(transpiled(workers=2).trainer)
    assert types[types.index("fetch_barrier") + 1:] == ["ema_decay", "ema_update", "ema_update", "ema_update"]


def test_a_program_for_testing_neither_sends_nor_receives(network, transpiled, op_types):
    fluid.optimizer.SGD(0.1).minimize(network())
    found = op_types(transpiled(workers=2).trainer.clone(for_test=True))
    assert found == FORWARD


def test_a_rate_that_workers_know_stays_with_them(network, transpiled):
    fluid.optimizer.SGD(0.1).minimize(network(learning_rate=0.5))
    made = transpiled(workers=2)
    assert made.trainer.global_block().var("learning_rate_0").persistable
    assert "learning_rate_0" in made.startup.global_block().vars
