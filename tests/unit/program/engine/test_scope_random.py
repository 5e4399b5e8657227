"""``create_random_int_lodtensor`` of fleet_mpi/program/engine/scope.py."""

from fleet_mpi.program.engine.scope import create_random_int_lodtensor


def test_random_tensors_have_the_shape_the_lengths_and_the_range_asked_for():
    made = create_random_int_lodtensor([[2, 1], [3, 200, 4]], [1], None, low=-1, high=1)
    assert made.shape() == [207, 1] and made.recursive_sequence_lengths() == [[2, 1], [3, 200, 4]]
    assert set(made.numpy().ravel().tolist()) == {-1, 0, 1} and made.numpy().dtype == "int64"
