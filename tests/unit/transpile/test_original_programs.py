"""Programs as the original's own tests of its transpiler look at them: op types, blocks, shapes and attributes.

The networks and what is expected of them are those of its ``test_dist_transpiler``, 2 workers and 2 servers. Where ours
differ on purpose, a test's name says so: a distributed table is updated by the script's own optimizer, from the mean
over the workers (the original: SGD, from the sum), and all lookups of a step are one op.
"""

import math

import pytest

from fleet_mpi import fluid

layers = fluid.layers
ENDPOINTS = "127.0.0.1:6174", "127.0.0.1:6175"


def types(block):
    """The op types of a block."""
    return [op.type for op in block.ops]


def dense(optimize, regularizer=None, bias="fc_b", **minimize):
    """One wide layer; ``optimize()`` makes the optimizer, after the network as scripts do."""
    x = layers.data("x", [1000])
    found = layers.fc(x, 1000, param_attr=fluid.ParamAttr(name="fc_w", regularizer=regularizer), bias_attr=bias)
    cost = layers.mean(layers.square_error_cost(found, layers.data("y", [1])))
    optimize().minimize(cost, **minimize)


def tables(is_distributed):
    """Two lookups in one table, a third in another, and a classifier behind them."""
    def pooled(name, table, is_distributed):
        ids = layers.data(name, [1], dtype="int64", lod_level=1)
        rows = layers.embedding(ids, [1000, 64], param_attr=table, is_sparse=True, is_distributed=is_distributed)
        return layers.sequence_pool(rows, "average")
    found = [pooled("title_ids", "shared_w", is_distributed), pooled("brand_ids", "shared_w", is_distributed),
             pooled("profile_ids", "profile_emb", False)]
    predict = layers.fc(layers.concat(found, axis=1), 2, param_attr=fluid.ParamAttr(name="fc_w"),
                        bias_attr=fluid.ParamAttr(name="fc_b"))
    cost = layers.cross_entropy(predict, layers.data("label", [1], dtype="int64"))
    fluid.optimizer.Adam(0.003).minimize(layers.mean(cost))


class Transpiled:
    """The programs of a job of 2 workers."""

    def __init__(self, servers=2, sync_mode=True, trainer_id=0, **options):
        config = fluid.DistributeTranspilerConfig()
        for name, value in options.items():
            setattr(config, name, value)
        self.endpoints = ENDPOINTS[:servers]
        self.origin = fluid.default_main_program().clone()
        self.transpiler = fluid.DistributeTranspiler(config)
        self.transpiler.transpile(trainer_id, pservers=",".join(self.endpoints), trainers=2, sync_mode=sync_mode)
        self.trainer = self.transpiler.get_trainer_program(wait_port=False)
        self.trainer_startup = fluid.default_startup_program()

    def server(self, number=0):
        """(program, startup program) of one server."""
        program = self.transpiler.get_pserver_program(self.endpoints[number])
        return program, self.transpiler.get_startup_program(self.endpoints[number], program)


def sgd():
    return fluid.optimizer.SGD(learning_rate=0.1)


FORWARD = ["mul", "elementwise_add", "elementwise_sub", "square", "mean", "fill_constant", "mean_grad", "square_grad",
           "elementwise_sub_grad", "elementwise_add_grad", "send", "mul_grad"]


def test_a_dense_model_on_two_servers():
    dense(sgd)
    made = Transpiled()
    (program, startup), (second, second_startup) = made.server(0), made.server(1)
    variables = made.trainer_startup.global_block().vars
    assert {"fc_w.block0", "fc_w.block1", "fc_w", "fc_b"} <= {*variables}
    assert not {"fc_w@GRAD", "fc_b@GRAD"} & {*variables}
    assert types(made.trainer_startup.global_block()) == [
        "fill_constant", "fill_constant", "uniform_random", "recv", "recv", "fetch_barrier", "concat"]
    assert types(made.trainer.global_block()) == [
        *FORWARD, "split_byref", "send", "send_barrier", "recv", "recv", "fetch_barrier", "concat"]
    assert len(program.blocks) == 3 and types(program.blocks[0]) == ["listen_and_serv"]
    assert types(program.blocks[1]) == types(program.blocks[2]) == ["sum", "scale", "sgd"]
    assert types(startup.global_block()) == ["fill_constant", "fill_constant", "uniform_random"]
    assert types(second_startup.global_block()) == ["fill_constant", "uniform_random"]
    assert startup.global_block().var("fc_w.block1").shape == (500, 1000)
    updated = {op.input("Param")[0].split(".block")[0] for one in (program, second) for block in one.blocks
               for op in block.ops if "Param" in op.input_names}
    assert updated == {op.input("Param")[0] for op in made.origin.global_block().ops if "Param" in op.input_names}


def test_blocks_larger_than_the_variable_leave_it_whole():
    dense(sgd)
    made = Transpiled(min_block_size=1048576)
    (program, startup), (_, second_startup) = made.server(0), made.server(1)
    assert types(made.trainer.global_block()) == [*FORWARD, "send", "send_barrier", "recv", "recv", "fetch_barrier"]
    assert len(program.blocks) == 2 and types(program.blocks[1]) == ["sum", "scale", "sgd"]
    assert types(startup.global_block()) == ["fill_constant", "fill_constant"]
    assert second_startup.global_block().var("fc_w").shape == (1000, 1000)


def test_variables_that_are_not_sliced():
    dense(sgd)
    made = Transpiled(slice_var_up=False)
    shapes = {startup.global_block().vars["fc_w"].shape for _, startup in (made.server(0), made.server(1))
              if "fc_w" in startup.global_block().vars}
    assert shapes == {(1000, 1000)}


def test_one_server_and_an_asynchronous_job():
    dense(sgd)
    made = Transpiled(servers=1, sync_mode=False)
    program, startup = made.server()
    assert types(made.trainer.global_block()) == [*FORWARD, "send", "recv", "recv"]
    assert [types(block) for block in program.blocks] == [["listen_and_serv"], ["sgd"], ["sgd"]]
    assert types(startup.global_block()) == ["fill_constant", "fill_constant", "uniform_random"]


STAIRS = ["cast", "fill_constant", "elementwise_div", "floor", "fill_constant", "elementwise_pow", "fill_constant",
          "elementwise_mul"]
CASE = ["fill_constant", "fill_constant", "less_than", "logical_not", "logical_and", "logical_and", "conditional_block"]
FIRST_CASE = [type for type in CASE if type != "logical_and"]


def decaying(rate):
    return lambda: fluid.optimizer.SGD(learning_rate=rate())


@pytest.mark.parametrize("sync_mode, counting", ((True, "increment"), (False, "sum")))
def test_a_schedule_is_a_block_of_simple_ops(sync_mode, counting):
    dense(decaying(lambda: layers.exponential_decay(1.0, decay_steps=2100, decay_rate=0.1, staircase=True)))
    made = Transpiled(sync_mode=sync_mode)
    program, startup = made.server()
    assert len(program.blocks) == 4 and types(program.blocks[1]) == [counting, *STAIRS]
    assert program.global_block().ops[0].attr("lr_decay_block_id") == 1
    assert not {"increment", "elementwise_pow"} & {*types(made.trainer.global_block())}
    assert "@LR_DECAY_COUNTER@" in startup.global_block().vars


def test_a_piecewise_schedule_has_a_block_for_each_condition():
    dense(decaying(lambda: layers.piecewise_decay([10000, 20000], [1.0, 0.5, 1.0])))
    program, _ = Transpiled().server()
    updates = [block.idx for block in program.blocks[0].ops[0].all_attrs()["optimize_blocks"]]
    assert len(program.blocks) == 7 and updates == [5, 6]
    assert types(program.blocks[1]) == ["increment", "cast", *FIRST_CASE, *CASE, "fill_constant", "conditional_block"]
    bodies = [op.attr("sub_block") for op in program.blocks[1].ops if op.type == "conditional_block"]
    assert [body.idx for body in bodies] == [2, 3, 4] and {body.parent_idx for body in bodies} == {1}
    assert [types(body) for body in bodies] == [["assign"]] * 3


def test_clip_and_decay_are_ops_of_the_servers_blocks():
    clip = fluid.clip.GradientClipByValue(0.1, need_clip=lambda param: param.name == "fc_w")
    dense(sgd, fluid.regularizer.L2Decay(), grad_clip=clip)
    made = Transpiled()
    program, _ = made.server()
    assert [types(block) for block in program.blocks[1:]] == [
        ["sum", "scale", "sgd"], ["sum", "scale", "clip", "scale", "sum", "sgd"]]
    assert not {"clip", "scale", "sgd"} & {*types(made.trainer.global_block())}


def test_decay_with_a_piecewise_schedule():
    bounds = [1, 10, 20, 30]
    dense(lambda: fluid.optimizer.Momentum(layers.piecewise_decay(bounds, [0.1 ** i for i in range(5)]), momentum=0.9,
                                           regularization=fluid.regularizer.L2Decay(1e-4)))
    program, _ = Transpiled().server()
    assert len(program.blocks) == 9
    assert types(program.blocks[1]) == ["increment", "cast", *FIRST_CASE, *CASE * 3, "fill_constant",
                                        "conditional_block"]
    assert types(program.blocks[7]) == types(program.blocks[8]) == ["sum", "scale", "scale", "sum", "momentum"]


def test_a_server_without_shards_has_one_empty_block():
    dense(sgd, bias=False)
    made = Transpiled(slice_var_up=False)
    program, startup = made.server(1)
    assert len(program.blocks) == 2 and program.blocks[1].ops == []
    assert program.blocks[0].ops[0].attr("optimize_blocks") == [program.blocks[1]]
    assert types(startup.global_block()) == ["fill_constant"]


def test_states_are_named_after_their_parameter_and_cut_as_it():
    dense(lambda: fluid.optimizer.RMSProp(learning_rate=0.1))
    program, startup = Transpiled().server()
    assert len(program.blocks) == 3 and types(program.blocks[1]) == ["sum", "scale", "rmsprop"]
    for name in ("fc_w.block1", "fc_w_momentum_0", "fc_w_mean_square_0", "fc_w_mean_grad_0"):
        assert startup.global_block().var(name).shape == (500, 1000)


STATES = {"Adam": "moment1 moment2 beta1_pow_acc beta2_pow_acc", "Adamax": "moment inf_norm beta1_pow_acc",
          "Adagrad": "moment", "DecayedAdagrad": "moment", "Adadelta": "_avg_squared_grad _avg_squared_update",
          "Ftrl": "squared linear", "Lamb": "moment1 moment2 beta1_pow_acc beta2_pow_acc"}


@pytest.mark.parametrize("name", STATES)
def test_the_names_of_accumulators(name):
    made = getattr(fluid.optimizer, name)(learning_rate=0.1)
    dense(lambda: made)
    expected = [f"{param}_{state}_0" for param in ("fc_b", "fc_w") for state in STATES[name].split()]
    assert made.get_opti_var_name_list() == expected
    assert {*expected} <= {*fluid.default_main_program().global_block().vars}


ADAM = ["adam", "scale", "scale"]
ROWS_FORWARD = ["sequence_pool", "sequence_pool", "sequence_pool", "concat", "mul", "elementwise_add", "cross_entropy2",
                "mean", "fill_constant", "mean_grad", "cross_entropy2_grad", "elementwise_add_grad", "send", "mul_grad",
                "send", "concat_grad", "sequence_pool_grad", "lookup_table_grad", "split_selected_rows", "send",
                "sequence_pool_grad", "lookup_table_grad", "sequence_pool_grad", "lookup_table_grad", "sum"]


@pytest.mark.parametrize("sync_mode", (True, False), ids=("sync", "async"))
def test_tables_by_rows_lookups_of_a_step_being_one_op_on_purpose(sync_mode):
    tables(is_distributed=False)
    made = Transpiled(sync_mode=sync_mode)
    program, _ = made.server()
    mean = ["sum", "scale"] if sync_mode else []
    assert [types(block) for block in program.blocks] == [["listen_and_serv"], *[mean + ADAM] * 3]
    ends = ["send_barrier"] if sync_mode else []
    assert types(made.trainer.global_block()) == [
        "distributed_lookup_table", *ROWS_FORWARD, "split_selected_rows", "send", *ends, "recv", "recv",
        *["fetch_barrier"] * sync_mode]
    assert types(made.trainer_startup.global_block()).count("fake_init") == 2


@pytest.mark.parametrize("sync_mode", (True, False), ids=("sync", "async"))
def test_a_distributed_table_has_blocks_to_look_up_and_to_save_and_its_own_optimizer_on_purpose(sync_mode):
    tables(is_distributed=True)
    made = Transpiled(sync_mode=sync_mode)
    program, _ = made.server()
    mean = ["sum", "scale"] if sync_mode else []
    assert [types(block) for block in program.blocks] == [
        ["listen_and_serv"], *[mean + ADAM] * 3, ["lookup_sparse_table"], ["save"]]
    op, = program.global_block().ops
    assert op.attr("prefetch_var_name_to_block_id") == ["shared_w@PREFETCH:4"] and op.attr("checkpint_block_id") == 5
    assert "split_ids" in types(made.trainer.global_block())
    assert made.transpiler.has_distributed_lookup_table
    rows = program.global_block().vars[made.transpiler.table_name].shape[0]
    assert rows == math.ceil(1000 / 2)


def test_programs_tell_which_job_they_are_of():
    tables(is_distributed=True)
    made = Transpiled(trainer_id=0)
    for program in (made.trainer, made.trainer.clone(), made.server(1)[0]):
        assert program._is_distributed and program._is_chief
        assert program._distributed_lookup_table == "shared_w" and program._endpoints == list(ENDPOINTS)
    assert made.server(1)[0]._ps_endpoint == ENDPOINTS[1]
    assert made.transpiler.trainer_num == 2 and made.transpiler.sync_mode and made.transpiler.trainer_id == 0


def test_another_worker_is_no_chief_and_a_model_without_tables_has_none():
    assert not fluid.Program()._is_distributed and not fluid.Program()._is_chief
    dense(sgd)
    made = Transpiled(trainer_id=1)
    assert not made.trainer._is_chief and made.trainer._distributed_lookup_table is None
    assert not made.transpiler.has_distributed_lookup_table and made.transpiler.table_name is None


def test_the_parts_on_the_servers_make_up_the_variables():
    dense(lambda: fluid.optimizer.Adam(learning_rate=0.1))
    program, _ = Transpiled().server()
    found = program._parameters_on_pservers
    parts = [found.get_distributed_vars_by_ep(endpoint) for endpoint in ENDPOINTS]
    for one in parts[0]:
        others = [other for other in parts[1] if other.origin.name == one.origin.name] if one.is_slice else []
        assert math.prod(one.origin.shape) == sum(math.prod(part.slice.shape) for part in (one, *others))
    block = found.get_distributed_var_by_slice("fc_w.block1")
    assert (block.is_slice, block.block_id, block.offset, block.vtype, block.endpoint) == (
        True, 1, 500000, "Param", ENDPOINTS[0])
    assert found.get_distributed_var_by_origin_and_ep("fc_w", ENDPOINTS[0]) is block
    assert {*found.get_distributed_vars_by_vtypes(["Param"], groupby=True)} == {"fc_b", "fc_w"}
    assert len(found.get_distributed_vars_by_ep(ENDPOINTS[1], "Optimizer")) == 4
    assert "fc_w.block1 [500, 1000] from element 500000" in found.overview()


def test_a_copy_of_a_servers_program_has_blocks_of_its_own():
    dense(sgd)
    program, _ = Transpiled().server()
    twin = program.clone()
    op = twin.global_block().ops[0]
    assert op.attr("optimize_blocks") == twin.blocks[1:] and op.attr("optimize_blocks") != program.blocks[1:]
    assert op._blocks_attr("optimize_blocks") == twin.blocks[1:] and op._blocks_attr_ids("optimize_blocks") == [1, 2]


def test_seeded_servers_draw_the_same_numbers_in_any_order_of_their_ops():
    def first(order):
        scope = fluid.Scope()
        startup.global_block().ops = order(ops)
        fluid.Executor().run(startup, scope=scope)
        return scope.find_var("fc_w.block1").get_tensor().array.tobytes()
    fluid.default_startup_program().random_seed = 7
    dense(sgd)
    _, startup = Transpiled().server()
    ops = list(startup.global_block().ops)
    assert first(list) == first(lambda ops: ops[::-1])
