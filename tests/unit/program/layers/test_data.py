"""Variables to feed: which shape they get."""

import pytest

from fleet_mpi.program.layers.data import data, static_data


@pytest.mark.parametrize("given, append, shape", [
    ([13], True, (-1, 13)), ([3, 224, 224], True, (-1, 3, 224, 224)), ([], True, (-1,)), ([13], False, (13,)),
    ([-1, 13], True, (-1, 13)), ([None, 13], True, (-1, 13)), ([20, 13], False, (20, 13))])
def test_the_batch_size_is_put_in_front_unless_a_size_is_open(given, append, shape):
    assert data("x", given, append_batch_size=append).shape == shape


@pytest.mark.parametrize("declare", [data, static_data])
def test_a_name_that_is_no_text_and_a_shape_that_is_no_list_are_refused(declare):
    with pytest.raises(TypeError, match="the name must be a text, got int"):
        declare(1, [13])
    with pytest.raises(TypeError, match="data 'x': expected the shape as a list"):
        declare("x", 13)


def test_the_form_of_2x_takes_the_shape_as_it_is():
    var = static_data("x", [None, 13])
    assert var.shape == (-1, 13) and var.need_check_feed and static_data("y", [4], None).dtype == "float32"


def test_fed_variables_are_inputs_without_gradient():
    var = data("ids", [1], dtype="int64", lod_level=1)
    assert var.is_data and var.stop_gradient and var.lod_level == 1 and var.dtype == "int64" and not var.persistable
    assert not data("image", [1], stop_gradient=False).stop_gradient


def test_asking_twice_gives_the_same_variable():
    assert data("x", [1]) is data("x", [1])
