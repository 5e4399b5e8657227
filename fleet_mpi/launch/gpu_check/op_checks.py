"""Values and gradients of ops on the device against the same ops on the CPU, within rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi import fluid
from fleet_mpi.launch.gpu_check.findings import FAIL, OK, Finding
from fleet_mpi.launch.gpu_check.op_cases import CASES
from fleet_mpi.program.engine.places import CPUPlace, CUDAPlace
from fleet_mpi.program.engine.scope import Scope, create_lod_tensor

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from fleet_mpi.launch.gpu_check.op_cases import Case
    from fleet_mpi.program.engine.places import Place

# Of the largest value: sums of some hundred float32 in another order differ by less.
TOLERANCE = 1e-4
SEED = 7


def check(device: int | None, quick: bool) -> list[Finding]:
    """All cases on the device."""
    return [compare(case, CUDAPlace(device)) for case in CASES]


def compare(case: Case, place: Place) -> Finding:
    """One case on a place and on the CPU."""
    try:
        expected, got = values(case, CPUPlace()), values(case, place)
    except Exception as error:  # whatever an op raises on a device is what the report is for
        return Finding(case.name, FAIL, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
    differences = {name: difference(got[name], expected[name]) for name in expected}
    worst = max(differences, key=differences.__getitem__)
    text = f"values and {len(differences) - case.outputs} gradients differ by at most {differences[worst]:.1e}"
    state = OK if differences[worst] <= TOLERANCE else FAIL
    return Finding(case.name, state, text if state == OK else f"{worst} differs by {differences[worst]:.1e} of its "
                   f"largest value, expected at most {TOLERANCE:g}", numbers=differences)


def values(case: Case, place: Place) -> dict[str, np.ndarray]:
    """{name: array} of the outputs, and of the gradients of float inputs and of parameters."""
    main, startup, scope = fluid.Program(), fluid.Program(), Scope()
    main.random_seed = startup.random_seed = SEED
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        inputs = {name: _declared(name, value) for name, value in case.inputs.items()}
        outputs = case.build(*inputs.values())
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        sources = _sources(main, inputs.values()) if case.has_gradient else []
        gradients = fluid.gradients([_loss(outputs[0])], sources) if sources else []
        fetched = {**{f"output {index}": one for index, one in enumerate(outputs)},
                   **{f"gradient of {one.name}": grad for one, grad in zip(sources, gradients) if grad is not None}}
    fluid.Executor(CPUPlace()).run(startup, scope=scope)
    got = fluid.Executor(place).run(main, feed={name: _fed(value) for name, value in case.inputs.items()},
                                    fetch_list=list(fetched.values()), scope=scope, return_numpy=False)
    return {name: np.array(one) for name, one in zip(fetched, got)}


def difference(got: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference as a part of the largest value; whole numbers must be equal, and NaN stand together."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return float("inf")
    if expected.dtype.kind != "f":
        return 0.0 if np.array_equal(got, expected) else float("inf")
    if not np.array_equal(np.isnan(got), np.isnan(expected)):
        return float("inf")
    scale = max(float(np.nanmax(abs(expected), initial=0)), float(np.finfo(expected.dtype).tiny))
    return float(np.nanmax(abs(got.astype("float64") - expected), initial=0)) / scale


def _declared(name: str, value: Any) -> Any:
    array, lengths = value if isinstance(value, tuple) else (value, None)
    var = fluid.data(name, [-1, *array.shape[1:]] if lengths else list(array.shape), str(array.dtype),
                     lod_level=1 if lengths else 0)
    var.stop_gradient = array.dtype.kind != "f"
    return var


def _loss(output: Any) -> Any:
    """A number that depends on every element in a way of its own; a normalized array's squares would not."""
    return fluid.layers.mean(fluid.layers.square(fluid.layers.sigmoid(output)))


def _sources(program: Any, inputs: Iterable[Any]) -> list[Any]:
    """What gradients are asked of: the float inputs, and the parameters that are trained."""
    trained = [one for one in program.global_block().all_parameters() if one.trainable]
    return [one for one in inputs if not one.stop_gradient] + trained


def _fed(value: Any) -> Any:
    return create_lod_tensor(value[0], [value[1]], CPUPlace()) if isinstance(value, tuple) else value
