"""Modules of 1.x that few scripts import: what they do, or the sentence with which their use is refused."""

import importlib
import inspect

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.fluid import debugger, default_scope_funcs, distribute_lookup_table
from fleet_mpi.fluid.annotations import deprecated
from fleet_mpi.fluid.contrib.op_frequence import op_freq_statistic
from fleet_mpi.fluid.layers import layer_function_generator, utils
from fleet_mpi.fluid.wrapped_decorator import signature_safe_contextmanager, wrap_decorator


def test_decorators_keep_name_and_signature():
    @wrap_decorator
    def doubled(function):
        return lambda *args: 2 * function(*args)

    @doubled
    def plus(a, b):
        """Adds."""
        return a + b

    @signature_safe_contextmanager
    def within(a, b=1):
        yield a + b
    assert plus(1, 2) == 6 and (plus.__name__, plus.__doc__) == ("plus", "Adds.")
    with within(2) as total:
        assert total == 3
    assert list(inspect.signature(within).parameters) == ["a", "b"]


def test_what_is_deprecated_says_so_once(capfd):
    @deprecated("1.5", "other", "It was slow.")
    def old():
        return 3
    assert old() == old() == 3
    assert capfd.readouterr().err == "fleet_mpi: old is deprecated since 1.5; take other. It was slow.\n"


def test_scopes_are_entered_and_left():
    outer = default_scope_funcs.get_cur_scope()
    default_scope_funcs.var("a")

    def inside():
        assert default_scope_funcs.get_cur_scope() is not outer and default_scope_funcs.find_var("a") is not None
        default_scope_funcs.var("b")
    default_scope_funcs.scoped_function(inside)
    assert default_scope_funcs.get_cur_scope() is outer and default_scope_funcs.find_var("b") is None
    with pytest.raises(UsageError, match="no enter_local_scope"):
        default_scope_funcs.leave_local_scope()


def test_a_block_is_drawn_and_written(tmp_path, capfd):
    fluid.layers.fc(fluid.data("x", [None, 2]), 1, param_attr="w")
    block = fluid.default_main_program().global_block()
    debugger.draw_block_graphviz(block, highlights=["w"], path=str(tmp_path / "graphs" / "one.dot"))
    text = (tmp_path / "graphs" / "one.dot").read_text()
    assert '"w" [shape=box, style=filled' in text and '"x" -> "op 0"' in text and text.count("diamond") == 2
    debugger.pprint_program_codes(fluid.default_main_program()), debugger.pprint_block_codes(block)
    assert capfd.readouterr().err.count("elementwise_add") == 2


def test_a_distributed_table_is_found_with_its_ids_and_rows():
    ids = fluid.data("ids", [None, 1], "int64")
    rows = [fluid.layers.embedding(ids, [9, 2], is_distributed=True, param_attr="table") for _ in range(2)]
    fluid.layers.embedding(ids, [9, 2], param_attr="small")
    program = fluid.default_main_program()
    assert distribute_lookup_table.find_distributed_lookup_table(program) == "table"
    assert distribute_lookup_table.find_distributed_lookup_table_inputs(program, "table") == [ids, ids]
    assert distribute_lookup_table.find_distributed_lookup_table_outputs(program, "table") == rows
    fluid.layers.embedding(ids, [9, 2], is_distributed=True, param_attr="other")
    with pytest.raises(ValueError, match="other, table"):
        distribute_lookup_table.find_distributed_lookup_table(program)


def test_ops_and_pairs_of_ops_are_counted():
    x = fluid.data("x", [None, 2])
    for _ in range(2):
        x = fluid.layers.fc(x, 2, act="relu")
    single, pairs = op_freq_statistic(fluid.default_main_program())
    assert dict(single) == {"mul": 2, "elementwise_add": 2, "relu": 2}
    assert dict(pairs) == {"mul->elementwise_add": 2, "elementwise_add->relu": 2, "relu->mul": 1}
    with pytest.raises(TypeError):
        op_freq_statistic("program")


def test_batches_are_shared_out_over_workers_and_a_last_round_is_whole(monkeypatch):
    from fleet_mpi.fleet import batch_sampling
    from fleet_mpi.fluid.contrib.reader import distributed_batch_reader

    def of(rank, count):
        job = type("Job", (), {"nranks": count, "local_rank": rank})
        monkeypatch.setattr(batch_sampling, "ParallelEnv", job)
        return list(distributed_batch_reader(lambda: iter(range(7)))())
    assert of(0, 1) == list(range(7))
    assert [of(rank, 3) for rank in range(3)] == [[0, 3], [1, 4], [2, 5]]


def test_a_value_is_fetched_from_the_scope():
    fluid.global_scope().var("w").get_tensor().set(np.ones(3, "float32"))
    assert fluid.executor._fetch_var("w").tolist() == [1, 1, 1]
    assert isinstance(fluid.executor._fetch_var("w", return_numpy=False), fluid.LoDTensor)
    with pytest.raises(ValueError, match="'v' has no value"):
        fluid.executor._fetch_var("v", fluid.Scope())


def test_sizes_are_given_once_or_for_every_dimension():
    assert utils.convert_to_list(3, 2, "stride") == [3, 3] and utils.convert_to_list((1, 2), 2, "stride") == [1, 2]
    for wrong in ([1, 2, 3], "ab", [1, 2.5]):
        with pytest.raises(ValueError, match="stride: expected one int or a list of 2"):
            utils.convert_to_list(wrong, 2, "stride")


def test_marks_on_texts_of_layers():
    @layer_function_generator.templatedoc()
    @layer_function_generator.autodoc("First. ")
    def layer():
        """Second."""
    assert layer.__doc__ == "First. Second."


@pytest.mark.parametrize("module, name, words", [
    ("trainer_desc", "MultiTrainer", "train_from_dataset"), ("trainer_factory", "TrainerFactory", "FetchHandler"),
    ("device_worker", "Hogwild", "a rank here, not a thread"),
    ("debugger", "run_fast_nan_inf_debug", "FLAGS_check_nan_inf")])
def test_names_of_what_is_not_built_are_refused_when_they_are_used(module, name, words):
    found = getattr(importlib.import_module(f"fleet_mpi.fluid.{module}"), name)
    with pytest.raises(NotBuilt, match=words):
        found(1)


def test_a_handler_of_fetches_is_where_trainers_are_made():
    from fleet_mpi.fluid.trainer_factory import FetchHandler
    assert FetchHandler is fluid.executor.FetchHandler
