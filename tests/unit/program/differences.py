"""How gradients through whole programs are checked: against differences in float64, and against another program."""

import numpy as np

from fleet_mpi.program.build.backward import gradients
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Tensor
from fleet_mpi.program.graph.program import default_main_program


def array_of(fed):
    """The array of a feed, which may be a tensor with LoD."""
    return fed.array if isinstance(fed, Tensor) else fed


def gradients_of(loss, sources, feed, place=None):
    """The loss and its gradients with respect to fed variables."""
    found = gradients([loss], sources)
    assert all(one is not None for one in found), f"no gradient reaches {[one.name for one in sources]}"
    results = Executor(place).run(feed=feed, fetch_list=[loss, *found])
    return results[0], [np.asarray(one.to_dense() if hasattr(one, "to_dense") else one) for one in results[1:]]


def numeric_gradient(loss, name, feed, step=1e-6):
    """The gradient by central differences."""
    values, executor = array_of(feed[name]), Executor()
    program = default_main_program().clone(for_test=True)
    found = np.empty(values.shape)
    for index in np.ndindex(values.shape):
        kept, totals = values[index], []
        for sign in (1, -1):
            values[index] = kept + sign * step
            totals.append(float(np.sum(executor.run(program, feed=feed, fetch_list=[loss.name])[0])))
        values[index] = kept
        found[index] = (totals[0] - totals[1]) / (2 * step)
    return found


def check_gradients(loss, sources, feed, near=1e-7, place=None):
    """Assert that the gradients of a loss equal differences; returns them."""
    _, found = gradients_of(loss, sources, feed, place)
    for source, got in zip(sources, found):
        np.testing.assert_allclose(got, numeric_gradient(loss, source.name, feed), rtol=near, atol=near,
                                   err_msg=source.name)
    return found
