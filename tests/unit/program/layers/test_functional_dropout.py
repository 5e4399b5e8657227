"""Dropout of elements, slices and channels (functional_dropout, dropout_classes)."""

import numpy as np
import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.backward import gradients
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import Program, default_main_program, program_guard
from fleet_mpi.program.layers import dropout_classes, functional_dropout
from fleet_mpi.program.layers.data import static_data

ONES = np.ones((20, 30, 2, 3), "float32")


def dropped(layer, program=None, shape=(None, 30, 2, 3), feed=ONES):
    out = layer(static_data("x", list(shape)))
    return Executor().run(program, feed={"x": feed}, fetch_list=[out])[0]


@pytest.mark.parametrize("axis, varies", [(0, (True, False, False)), (1, (False, True, False)),
                                          ([0, 1], (True, True, False)), ((0, 2), (True, False, True))])
def test_the_other_axes_are_dropped_together(axis, varies):
    found = dropped(lambda x: functional_dropout.dropout(x, 0.4, axis))
    for dimension, free in enumerate(varies):
        same = (found == np.take(found, [0], dimension)).all()
        assert same != free
    assert np.allclose(np.unique(found), [0, 1 / 0.6])


def test_all_axes_are_each_element():
    found = dropped(lambda x: functional_dropout.dropout(x, 0.5, [0, 1, 2, 3]))
    assert (found == 0).mean() == pytest.approx(0.5, abs=0.05)


def test_the_word_of_2x_for_scaling_in_inference():
    found = dropped(lambda x: functional_dropout.dropout(x, 0.25, training=False, mode="downscale_in_infer"))
    assert (found == 0.75).all()
    found = dropped(lambda x: functional_dropout.dropout(x, 0.25, 0, training=False, mode="downscale_in_infer"))
    assert (found == 0.75).all()


def test_channels_go_as_a_whole():
    for layer, shape, axes in ((dropout_classes.Dropout2D(0.3), (20, 30, 2, 3), (2, 3)),
                               (dropout_classes.Dropout2D(0.3, "NHWC"), (20, 2, 3, 30), (1, 2)),
                               (dropout_classes.Dropout3D(0.3), (20, 30, 2, 3, 1), (2, 3, 4)),
                               (dropout_classes.Dropout3D(0.3, "NDHWC"), (20, 1, 2, 3, 30), (1, 2, 3))):
        with program_guard(Program()):
            found = dropped(layer, shape=(None, *shape[1:]), feed=np.ones(shape, "float32"))
        assert (found.min(axes) == found.max(axes)).all()
        assert (found == 0).mean() == pytest.approx(0.3, abs=0.08)


def test_layers_for_inference_change_nothing():
    for layer in (dropout_classes.Dropout2D(), dropout_classes.AlphaDropout()):
        layer.eval()
        assert (dropped(layer) == 1).all()


def test_a_program_cloned_for_testing_drops_nothing():
    x = static_data("x", [None, 30, 2, 3])
    outs = [functional_dropout.dropout2d(x), functional_dropout.alpha_dropout(x)]
    program = default_main_program().clone(for_test=True)
    for found in Executor().run(program, feed={"x": ONES}, fetch_list=[out.name for out in outs]):
        assert (found == 1).all()


def test_the_gradient_goes_through_what_is_kept():
    x = static_data("x", [None, 30, 2, 3])
    x.stop_gradient = False
    out = functional_dropout.dropout2d(x, 0.5)
    found, slope = Executor().run(feed={"x": ONES}, fetch_list=[out, *gradients([out], [x])])
    np.testing.assert_array_equal(found, slope)


def test_what_means_nothing_is_refused():
    x = static_data("x", [None, 30, 2, 3])
    for call, words in ((lambda: functional_dropout.dropout(x, 0.5, 4), "0 to 3, got 4"),
                        (lambda: functional_dropout.dropout3d(x), "5 dimensions"),
                        (lambda: functional_dropout.dropout2d(x, data_format="NCDHW"), "'NCDHW'")):
        with pytest.raises(UsageError, match=words):
            call()
