"""A server's programs: what they show, and that shards start as the parts of the whole that they are."""

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope

layers, optimizer, initializer = fluid.layers, fluid.optimizer, fluid.initializer


def service(program):
    """The op that serves."""
    op, = program.global_block().ops
    return op


def update_blocks(program, op_types):
    """Op types of the update blocks by the shard's parameter."""
    return {next(op.input("Param")[0] for op in block.ops if op.input("Param")): op_types(program, block.idx)
            for block in service(program).attr("optimize_blocks")}


def test_block_0_only_serves_and_every_shard_has_a_block_of_updates(network, transpiled, op_types):
    optimizer.SGD(0.1).minimize(network())
    made = transpiled(servers=2, workers=2)
    found = [update_blocks(program, op_types) for program in made.servers]
    assert found == [{"b": ["sum", "scale", "sgd"], "w": ["sum", "scale", "sgd"]}, {"v": ["sum", "scale", "sgd"]}]
    op = service(made.servers[1])
    assert (op.type, op.attr("endpoint"), op.attr("pserver_id"), op.attr("Fanin")) == (
        "listen_and_serv", made.endpoints[1], 1, 2)
    assert op.attr("grad_to_block_id") == ["v@GRAD:1"] and op.attr("lr_decay_block_id") == -1
    assert (op.attr("distributed_mode"), op.attr("sync_mode"), op.attr("dc_asgd")) == (0, True, False)


def test_the_sum_is_in_worker_order_and_the_mean_comes_before_decay(network, transpiled):
    optimizer.SGD(0.1, regularization=fluid.regularizer.L1Decay(0.1)).minimize(network())
    program, = transpiled(workers=4).servers
    ops = program.block(1).ops
    assert [op.type for op in ops] == ["sum", "scale", "sign", "scale", "sum", "sgd"]
    assert ops[0].input("X") == [f"b@GRAD.trainer_{worker}" for worker in range(4)]
    assert ops[1].attr("scale") == 0.25 and ops[1].output("Out") == ["b@GRAD"]
    assert ops[-1].input("Grad") == ops[-2].output("Out")


def test_b10_one_worker_is_sent_and_read_under_the_same_name(network, transpiled, op_types):
    optimizer.SGD(0.1).minimize(network())
    made = transpiled(workers=1)
    assert set(map(tuple, update_blocks(made.servers[0], op_types).values())) == {("sgd",)}
    sent = {name for op in made.trainer.global_block().ops if op.type == "send" for name in op.input("X")}
    read = {op.input("Grad")[0] for block in made.servers[0].blocks[1:] for op in block.ops}
    assert sent == read


@pytest.mark.parametrize("options, number", (
    (dict(runtime_split_send_recv=True), 1), ({}, 2), (dict(enable_dc_asgd=True), 1), (dict(staleness=1), 1)))
def test_b11_asynchronous_servers_serve_asynchronous_workers_and_never_divide(
        network, transpiled, op_types, options, number):
    optimizer.SGD(0.1).minimize(network())
    made = transpiled(workers=3, sync_mode=False, **options)
    op = service(made.servers[0])
    assert op.attr("distributed_mode") == number and not op.attr("sync_mode")
    assert op.attr("dc_asgd") == bool(options.get("enable_dc_asgd"))
    assert set(map(tuple, update_blocks(made.servers[0], op_types).values())) == {("sgd",)}
    assert "send_barrier" not in op_types(made.trainer)


def test_blocks_of_a_variable_have_its_states_in_their_shape(network, transpiled):
    optimizer.Adam(0.1).minimize(network(1300))
    first, second = transpiled(servers=2).servers
    for program, block, rows in ((first, 0, 7), (second, 1, 6)):
        variables = program.global_block().vars
        assert variables[f"w.block{block}"].shape == variables["w_moment1_0"].shape == (rows, 1300)
        assert variables["w_beta1_pow_acc_0"].shape == (1,)


def test_b38_every_state_is_cut_the_mean_gradient_of_rmsprop_too(network, transpiled):
    optimizer.RMSProp(0.1, centered=True).minimize(network(1300))
    program = transpiled(servers=2).servers[0]
    states = [name for name in program.global_block().vars if name.startswith("w_")]
    assert len(states) == 3 and {program.global_block().var(name).shape for name in states} == {(7, 1300)}


def test_several_blocks_of_a_variable_on_one_server_have_states_of_their_own(network, transpiled):
    class AllOnOne(fluid.transpiler.RoundRobin):
        """Everything to the last server."""

        def dispatch(self, varlist):
            """The last server."""
            return [self._eps[-1] for _ in varlist]
    optimizer.Momentum(0.1, 0.9).minimize(network(1300))
    first, second = transpiled(servers=2, split_method=AllOnOne).servers
    empty, = service(first).attr("optimize_blocks")
    assert empty.ops == [] and len(first.blocks) == 2
    assert {"w_velocity_0.block0", "w_velocity_0.block1", "w.block0", "w.block1", "v_velocity_0"} <= {
        *second.global_block().vars}


def test_b19_a_schedule_has_a_block_of_its_own_on_every_server(network, transpiled, op_types):
    optimizer.SGD(layers.exponential_decay(0.1, 10, 0.5)).minimize(network())
    for sync_mode in (True, False):
        with fluid.program_guard(fluid.default_main_program().clone(), fluid.default_startup_program().clone()):
            made = transpiled(servers=2, workers=2, sync_mode=sync_mode)
        for program in made.servers:
            index = service(program).attr("lr_decay_block_id")
            assert op_types(program, index)[0] == ("increment" if sync_mode else "sum")
            assert program.block(index) not in service(program).attr("optimize_blocks")
        for startup in made.server_startups:
            assert "@LR_DECAY_COUNTER@" in startup.global_block().vars


def test_rows_have_their_updates_among_the_others(transpiled, op_types):
    ids, y = layers.data("ids", [1], dtype="int64"), layers.data("y", [1])
    found = layers.fc(layers.embedding(ids, [2000, 10], is_sparse=True, param_attr="table"), 1, bias_attr=False,
                      param_attr="v")
    optimizer.Adam(0.1).minimize(layers.mean(layers.square_error_cost(found, y)))
    made = transpiled(servers=2, workers=2)
    assert [list(update_blocks(program, op_types)) for program in made.servers] == [["v", "table.block0"],
                                                                                   ["table.block1"]]
    assert service(made.servers[0]).attr("sparse_grad_to_param") == ["table@GRAD:table"]
    part = made.servers[0].global_block().var("table@GRAD.block0.trainer_0")
    assert part.type == fluid.core.VarDesc.VarType.SELECTED_ROWS


def test_batch_normalisation_has_its_statistics_with_the_workers(transpiled, op_types):
    x, y = layers.data("x", [13]), layers.data("y", [1])
    loss = layers.mean(layers.square_error_cost(layers.fc(layers.batch_norm(x, name="norm"), 1), y))
    optimizer.SGD(0.1).minimize(loss)
    made = transpiled(workers=2)
    assert {*update_blocks(made.servers[0], op_types)} == {"norm.w_0", "norm.b_0", "fc_0.w_0", "fc_0.b_0"}
    assert {"norm.w_1", "norm.w_2"} <= {*made.startup.global_block().vars}
    assert not {"norm.w_1", "norm.w_2"} & {*made.server_startups[0].global_block().vars}


def test_programs_can_be_printed(network, transpiled):
    optimizer.Adam(layers.noam_decay(64, 10),
                   grad_clip=fluid.clip.GradientClipByGlobalNorm(1.0)).minimize(network(1300))
    made = transpiled(servers=3, workers=2)
    for program in (made.trainer, made.startup, *made.servers, *made.server_startups):
        assert str(program).startswith("{ // block 0")
    assert "listen_and_serv" in str(made.servers[0]) and "w.block" in str(made.server_startups[2])


# ---------------------------------------------------------------------- first values

def first_values(startup):
    """What a startup program leaves in a new scope, by name."""
    scope = Scope()
    Executor().run(startup, scope=scope)
    return {name: scope.array(name) for name in scope.local_var_names() if scope.array(name) is not None}


def put_together(made, name):
    """A variable from what the servers' startup programs made of its shards."""
    parts = [first_values(startup) for startup in made.server_startups]
    shards = made.distribution.placement.of_variable(name)
    return np.concatenate([parts[shard.server][name if len(shards) == 1 else f"{name}.block{shard.block}"].reshape(-1)
                           for shard in shards])


INITIALIZERS = {
    "constant": lambda: initializer.Constant(0.5),
    "uniform": lambda: initializer.Uniform(-1.0, 1.0),
    "uniform, seed": lambda: initializer.Uniform(-1.0, 1.0, seed=5),
    "normal": lambda: initializer.Normal(),
    "truncated normal": lambda: initializer.TruncatedNormal(seed=5),
    "xavier": lambda: initializer.Xavier(),
    "xavier, normal": lambda: initializer.Xavier(uniform=False),
    "msra": lambda: initializer.MSRA(),
    "msra, normal": lambda: initializer.MSRA(uniform=False),
    "array": lambda: initializer.NumpyArrayInitializer(np.arange(13 * 2600, dtype="float32").reshape(13, 2600)),
}


@pytest.mark.parametrize("seed", (0, 9), ids=("job's seed", "program's seed"))
@pytest.mark.parametrize("kind", INITIALIZERS)
def test_b37_servers_draw_the_parts_of_what_one_process_draws(network, transpiled, kind, seed):
    fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = seed
    optimizer.SGD(0.1).minimize(network(2600, initializer=INITIALIZERS[kind]()))
    alone = first_values(fluid.default_startup_program())
    made = transpiled(servers=4, split_method="HashName")
    assert len(made.distribution.placement.of_variable("w")) == 4
    for name in ("w", "b", "v"):
        assert put_together(made, name).tobytes() == alone[name].tobytes(), name


def test_b37_a_bilinear_filter_is_cut_too(transpiled):
    image = layers.data("image", [32, 8, 8])
    found = layers.conv2d_transpose(image, 64, filter_size=4, stride=2, padding=1, bias_attr=False,
                                    param_attr=fluid.ParamAttr(name="filter", initializer=initializer.Bilinear()))
    optimizer.SGD(0.1).minimize(layers.mean(found))
    alone = first_values(fluid.default_startup_program())
    made = transpiled(servers=3)
    assert len(made.distribution.placement.of_variable("filter")) == 3
    assert put_together(made, "filter").tobytes() == alone["filter"].tobytes()


def test_a_variable_made_by_other_ops_is_made_whole_and_cut(network, transpiled):
    optimizer.SGD(0.1).minimize(network(2600))
    block = fluid.default_startup_program().global_block()
    block.create_var(name="drawn", shape=[13, 2600], dtype="float32")
    block.ops = [op for op in block.ops if op.output_arg_names != ["w"]]
    for type, inputs, out, attrs in (("gaussian_random", {}, "drawn",
                                      {"shape": [13, 2600], "mean": 0.0, "std": 1.0, "seed": 3}),
                                     ("scale", {"X": ["drawn"]}, "w", {"scale": 0.5})):
        block.append_op(type, inputs, {"Out": [out]}, attrs)
    fluid.default_startup_program().touch()
    alone = first_values(fluid.default_startup_program())
    assert put_together(transpiled(servers=4), "w").tobytes() == alone["w"].tobytes()


def test_states_start_as_in_one_process(network, transpiled):
    optimizer.Adagrad(0.1, initial_accumulator_value=0.25).minimize(network(1300))
    made = transpiled(servers=2)
    for startup in made.server_startups:
        values = first_values(startup)
        held = [name for name in values if "moment" in name]
        assert held and all((values[name] == 0.25).all() for name in held)
