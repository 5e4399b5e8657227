"""Sequential, LayerList and ParameterList: run, index, slice, replace and delete."""

from fleet_mpi.program.graph.program import default_main_program
from fleet_mpi.program.layers.classes import Linear
from fleet_mpi.program.layers.layer_containers import LayerList, ParameterList, Sequential


def test_a_sequence_runs_and_is_indexed_by_number_name_and_slice():
    network = Sequential(("one", Linear(4, 3)), ("two", Linear(3, 2)))
    x = default_main_program().global_block().create_var(name="x", shape=[-1, 4], is_data=True)
    assert network(x).shape == (-1, 2) and len(network) == 2 and network.two is network[1] is network["two"]
    assert network[:1](x).shape == (-1, 3) and list(network) == network.sublayers()
    network[-1] = Linear(3, 5)
    assert network(x).shape == (-1, 5)
    del network["two"]
    assert network(x).shape == (-1, 3) and len(network) == 1


def test_a_list_grows_and_shrinks():
    layers = LayerList([Linear(4, 4)])
    layers.append(Linear(4, 4)).extend([Linear(4, 4)])
    inserted = Linear(4, 4)
    layers.insert(0, inserted)
    assert len(layers) == 4 and layers[0] is inserted and len(list(layers)) == 4
    assert len(layers.parameters()) == 8 and list(layers[1:3]) == list(layers)[1:3]
    last = layers[3]
    layers[1] = inserted
    del layers[2]
    assert list(layers) == [inserted, inserted, last] and [name for name, _ in layers.named_children()] == ["0", "2"]


def test_a_list_of_parameters():
    first, second = Linear(2, 2).parameters()
    held = ParameterList([first]).append(second)
    held[0] = second
    assert list(held) == [second, second] and len(held) == 2 and held[1] is second
