"""Layer: parameters and sublayers are registered, named, counted once, saved and loaded."""

import numpy as np
import pytest

from fleet_mpi.errors import NotBuilt, UnknownName, UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import global_scope
from fleet_mpi.program.graph.program import default_main_program, default_startup_program
from fleet_mpi.program.layers.classes import Dropout, Linear
from fleet_mpi.program.layers.layer import Layer
from fleet_mpi.program.layers.layer_containers import Sequential
from fleet_mpi.program.layers.tensor import fill_constant


class Tower(Layer):
    """A layer with a parameter of its own, a sublayer by attribute and two by name."""

    def __init__(self):
        super().__init__()
        self.scale = self.create_parameter([4], default_initializer=None)
        self.first = Linear(4, 4)
        for number in range(2):
            self.add_sublayer(f"more_{number}", Linear(4, 4, bias_attr=False))

    def forward(self, x):
        return self.first(x)


def test_parameters_are_found_by_path_in_order():
    tower = Tower()
    assert [path for path, _ in tower.named_parameters()] == [
        "scale", "first.weight", "first.bias", "more_0.weight", "more_1.weight"]
    assert [param.name for param in tower.parameters()] == [
        "tower_0.w_0", "linear_0.w_0", "linear_0.b_0", "linear_1.w_0", "linear_2.w_0"]
    assert [param.name for param in tower.parameters(include_sublayers=False)] == ["tower_0.w_0"]


def test_sublayers_are_found_by_path():
    tower = Tower()
    assert [path for path, _ in tower.named_sublayers()] == ["first", "more_0", "more_1"]
    assert tower.sublayers(include_self=True)[0] is tower and len(tower.sublayers()) == 3
    assert list(tower.children()) == tower.sublayers() and next(tower.named_children())[0] == "first"
    assert [path for path, _ in tower.named_sublayers("tower", layers_set={tower.first})] == [
        "tower.more_0", "tower.more_1"]


def test_a_shared_layer_counts_once():
    shared = Linear(4, 4)
    both = Sequential(shared, shared)
    assert len(both.parameters()) == 2 and len(both.sublayers()) == 1 and list(both.children()) == [shared]


def test_attributes_are_registered_replaced_and_deleted():
    tower = Tower()
    assert tower.first is tower._sub_layers["first"] and tower.more_0.bias is None
    tower.first = None
    assert tower.first is None and "first" not in tower._sub_layers
    tower.first = Linear(4, 4)
    del tower.first
    with pytest.raises(UnknownName, match="Tower has no 'first'"):
        tower.first
    with pytest.raises(UnknownName, match="did you mean 'scale'"):
        tower.scales


def test_only_parameters_and_layers_can_be_added():
    tower = Tower()
    with pytest.raises(UsageError, match="expected a Layer, got int"):
        tower.add_sublayer("odd", 3)
    with pytest.raises(UsageError, match="expected a Parameter, got int"):
        tower.add_parameter("odd", 3)
    assert tower.add_parameter("another", tower.scale) is tower.scale


def test_a_layer_whose_base_was_not_initialised_says_so():
    class Hasty(Layer):
        def __init__(self):
            self.first = Linear(1, 1)
    with pytest.raises(UsageError, match="Hasty: call super"):
        Hasty()


def test_calls_use_the_same_parameters():
    layer = Linear(4, 4)
    x = default_main_program().global_block().create_var(name="x", shape=[-1, 4], is_data=True)
    layer(layer(x))
    assert len(default_main_program().all_parameters()) == 2
    assert [op.type for op in default_main_program().global_block().ops] == ["matmul_v2", "elementwise_add"] * 2


def test_the_state_is_what_the_scope_holds():
    tower = Tower()
    Executor().run(default_startup_program())
    state = {path: np.array(tensor) for path, tensor in tower.state_dict().items()}
    assert sorted(state) == ["first.bias", "first.weight", "more_0.weight", "more_1.weight", "scale"]
    tower.set_state_dict({path: value + 1 for path, value in state.items()})
    assert (global_scope().array("linear_0.w_0") == state["first.weight"] + 1).all()
    by_name = {param.name: np.zeros(param.shape, "float32") for param in tower.parameters()}
    tower.set_state_dict(by_name, use_structured_name=False)
    assert not global_scope().array("linear_0.w_0").any()


@pytest.mark.parametrize("state, said", (
    ({"weight": np.zeros((2, 2))}, "the state given has no 'bias'"),
    ({"weight": np.zeros((2, 2)), "bias": np.zeros(3)}, "'bias' is [3] in the state given, expected [2]")))
def test_what_a_state_lacks_or_has_in_another_shape_stays(state, said, capsys):
    layer = Linear(2, 2)
    Executor().run(default_startup_program())
    global_scope().array("linear_0.b_0")[...] = 7
    layer.set_state_dict(state)
    assert not global_scope().array("linear_0.w_0").any() and (global_scope().array("linear_0.b_0") == 7).all()
    assert said in capsys.readouterr().err


def test_a_buffer_may_be_kept_out_of_the_state():
    layer = Linear(2, 2)
    for name, persistable in (("kept", True), ("left", False)):
        layer.register_buffer(name, fill_constant([1], "float32", 1.0), persistable)
    Executor().run(default_startup_program())
    assert sorted(layer.state_dict()) == ["bias", "kept", "weight"] and len(layer.buffers()) == 2


def test_all_buffers_belong_to_the_state_of_a_static_program_and_paths_may_begin_with_a_prefix():
    layer = Linear(2, 2)
    layer.register_buffer("left", fill_constant([1], "float32", 1.0), persistable=False)
    Executor().run(default_startup_program())
    assert sorted(layer.to_static_state_dict(structured_name_prefix="a.")) == ["a.bias", "a.left", "a.weight"]


def test_a_buffer_that_is_set_gets_its_value_by_an_op():
    layer = Linear(2, 2)
    counter = layer.register_buffer("counter", fill_constant([1], "float32", 1.0))
    layer.counter = fill_constant([1], "float32", 5.0)
    assert layer.counter is counter and Executor().run(fetch_list=[counter])[0] == [5.0]
    layer.counter = None
    assert layer.counter is None and not layer.buffers()


def test_a_state_of_another_element_type_is_converted():
    layer = Linear(2, 2)
    Executor().run(default_startup_program())
    layer.set_state_dict({"weight": np.full((2, 2), 3.0), "bias": np.ones(2, "int64")})
    assert global_scope().array("linear_0.w_0").dtype == global_scope().array("linear_0.b_0").dtype == np.float32


def test_a_layer_makes_variables_named_after_it():
    made = Linear(2, 2).create_variable()
    assert made.name == "linear_0._generated_var_0" and not made.persistable
    assert Linear(2, 2).create_tensor("mine", persistable=True, dtype="int64").name == "mine"


def test_hooks_change_what_goes_in_and_comes_out_until_they_are_removed():
    layer, x = Linear(2, 2, bias_attr=False), default_main_program().global_block().create_var(
        name="x", shape=[-1, 2], is_data=True)
    met = []
    note = layer.register_forward_pre_hook(lambda layer, inputs: met.append((layer, inputs)))
    double = layer.register_forward_pre_hook(lambda layer, inputs: inputs[0] * 2)
    more = layer.register_forward_post_hook(lambda layer, inputs, outputs: outputs + inputs[0])
    both = layer(x)
    double.remove(), double.remove()
    single = layer(x)
    more.remove()
    plain = layer(x)
    note.remove()
    layer(x)
    assert met == [(layer, (x,))] * 3
    executor, ones = Executor(), np.ones((1, 2), "float32")
    executor.run(default_startup_program())
    both, single, plain = executor.run(feed={"x": ones}, fetch_list=[both, single, plain])
    np.testing.assert_allclose(both, plain * 2 + 2, rtol=1e-6)
    np.testing.assert_allclose(single, plain + 1, rtol=1e-6)


def test_training_is_switched_everywhere():
    network = Sequential(Linear(2, 2), Sequential(Dropout(0.5)))
    network.eval()
    assert not any(layer.training for layer in network.sublayers(include_self=True))
    network.train()
    assert network[1][0].training


def test_apply_reaches_every_layer_from_the_bottom_up():
    met = []
    network = Sequential(Linear(2, 2), Linear(2, 2))
    assert network.apply(met.append) is network
    assert met[-1] is network and len(met) == 3


def test_what_belongs_to_eager_mode_is_refused_or_empty():
    tower = Tower()
    tower.clear_gradients()
    with pytest.raises(NotBuilt, match="there is no eager mode"):
        tower.backward()
    with pytest.raises(NotImplementedError, match="Layer defines no forward"):
        Layer()(1)


def test_a_layer_prints_what_it_is_made_of():
    assert repr(Sequential(Linear(2, 3))) == "Sequential(\n  (0): Linear(2, 3)\n)"
