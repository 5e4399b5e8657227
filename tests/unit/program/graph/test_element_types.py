"""Kinds of element: what the original's layers refuse is refused as the kind of error it raises."""

import numpy as np
import pytest

from fleet_mpi import fluid
from fleet_mpi.program.graph import element_types, registry

layers = fluid.layers
ARRAY = np.ones((3, 4), "float32")


def given(dtype, shape=(3, 4)):
    return fluid.data(f"{dtype}_{'_'.join(map(str, shape))}", list(shape), dtype)


@pytest.mark.parametrize("build", [
    lambda: layers.fc(given("int32"), 3), lambda: layers.mean(given("int64")), lambda: layers.relu(given("int32")),
    lambda: layers.softmax(given("int32")), lambda: layers.dropout(given("int32"), 0.5),
    lambda: layers.cross_entropy(given("int32"), given("int64", (3, 1))),
    lambda: layers.conv2d(given("int32", (1, 1, 4, 4)), 2, 2), lambda: layers.matmul(given("int32"), given("int32")),
    lambda: layers.embedding(given("float32", (3, 1)), [9, 2]), lambda: fluid.embedding(given("float32"), [9, 2]),
    lambda: layers.one_hot(given("float32", (3, 1)), 9),
    lambda: layers.accuracy(given("int64"), given("int64", (3, 1))),
    lambda: layers.gather(given("float32"), given("bool", (3,))),
    lambda: layers.accuracy(given("float32"), given("float32", (3, 1))),
    lambda: layers.auc(given("float32"), given("float32", (3, 1))),
    lambda: layers.scatter(given("float32"), given("float32", (3,)), given("float32"))])
def test_elements_of_another_kind_are_a_type_error_that_names_them(build):
    with pytest.raises(TypeError, match=r"must hold (floating-point|whole) numbers, got '.*' of"):
        build()


@pytest.mark.parametrize("build", [
    lambda: layers.fc(ARRAY, 3), lambda: layers.fc([ARRAY], 3), lambda: layers.embedding(ARRAY, [9, 2]),
    lambda: layers.concat([ARRAY, ARRAY]), lambda: layers.concat([given("float32"), given("int64")]),
    lambda: layers.While(ARRAY), lambda: layers.While(given("float64", (1,))),
    lambda: layers.cast(given("float32"), "x"),
    lambda: layers.reshape(given("float32"), 2), lambda: layers.elementwise_add(ARRAY, ARRAY),
    lambda: layers.cond(1, None, None), lambda: layers.while_loop(lambda x: x, lambda x: x, 3),
    lambda: layers.square_error_cost(ARRAY, ARRAY), lambda: fluid.optimizer.SGD("fast"),
    lambda: fluid.clip.set_gradient_clip("all"), lambda: fluid.Executor().run("program"),
    lambda: fluid.layers.fc(given("float32"), 3, param_attr=2.5), lambda: layers.transpose(given("float32"), "10"),
    lambda: layers.switch_case(given("float32", (1,)), {1: None}), lambda: layers.switch_case(1, {1: None}),
    lambda: layers.array_read(layers.create_array("float32"), given("float32", (1,))),
    lambda: layers.embedding(given("int64", (3, 1)), [9, 2], dtype="int32"), lambda: fluid.gradients(3, 3),
    lambda: fluid.optimizer.SGD(0.1, grad_clip=1.0), lambda: layers.sequence_pool(ARRAY, "sum"),
    lambda: layers.zeros("ab", "float32"), lambda: layers.fill_constant(1, "float32", 1),
    lambda: layers.split(given("float32"), "a"), lambda: layers.topk(given("float32"), "a"),
    lambda: layers.huber_loss(given("int64"), given("float32"), 1.0)])
def test_what_is_no_variable_or_not_of_the_right_kind_is_a_type_error(build):
    with pytest.raises(TypeError) as refusal:
        build()
    assert isinstance(refusal.value, fluid.core.EnforceNotMet), refusal.value  # ours, not one that Python tripped over


def test_the_table_names_ops_and_slots_that_exist():
    for type, slots in element_types.KINDS.items():
        assert set(slots) <= set(registry.find(type).inputs), type
