"""How every op is tested: a Case says what goes in and what numpy makes of it; three checks follow.

Forward against a definition written apart from the op, the gradient against differences in float64,
and the same on the strict stand-in for device arrays, which no value leaves unnoticed.
A family's file lists its CASES and takes the three from ``checks(CASES)``.
"""

import numpy as np
import pytest

from fleet_mpi import testing
from fleet_mpi.program.build.backward import gradients
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.places import CPUPlace, Place
from fleet_mpi.program.engine.scope import Scope, Tensor
from fleet_mpi.program.graph.program import Program, program_guard


class StandInPlace(Place):
    """A device made of numpy that refuses to be mixed with the host."""

    def array_module(self):
        return testing.device


class Case:
    """One op with inputs, attributes and the outputs to expect.

    inputs: {slot: array | (array, lod_lengths) | list of them}; floats are run as float64.
    expect: function(inputs as given, attrs) -> {slot: array or list}, or that dictionary.
    grads: the input slots whose gradients are checked ("X Y"); by: the output slot they flow from.
    near: numeric tolerance of the gradient; persistable: input slots kept in the scope (in-place state).
    """

    def __init__(self, type, inputs, attrs=None, expect=None, grads="", by="Out", note="", near=1e-6,
                 outputs=None, lods=None, persistable=""):
        self.type, self.inputs, self.attrs, self.expect = type, inputs, attrs or {}, expect
        self.grads, self.by, self.note, self.near = grads.split(), by, note, near
        self.outputs, self.lods = outputs, lods or {}
        self.persistable = persistable.split()

    def __repr__(self):
        return f"{self.type}-{self.note}" if self.note else self.type

    def expected(self):
        """{slot: list of arrays}."""
        found = self.expect(self.inputs, self.attrs) if callable(self.expect) else self.expect
        return {slot: value if isinstance(value, list) else [value] for slot, value in found.items()}


def ids(cases):
    """Readable, distinct test ids."""
    return [f"{case!r}-{i}" for i, case in enumerate(cases)]


def checks(cases, widen=(True,), step=1e-5):
    """The tests of a family of ops, each run for every case: ``test_forward, test_gradient, test_device``.

    Without a gradient in any case there are two, ``test_forward, test_device``: a family that gets its first
    gradient cannot be imported until the file takes the third.
    widen: run forward with floats as float64 (True), as given (False), or both; step: of the differences.
    """
    @pytest.mark.parametrize("case", cases, ids=ids(cases))
    def test_forward(case):
        for wide in widen:
            check_forward(case, widen=wide)
        check_shapes_at_build(case)

    differentiable = [case for case in cases if case.grads]

    @pytest.mark.parametrize("case", differentiable, ids=ids(differentiable))
    def test_gradient(case):
        check_gradient(case, step=step)

    @pytest.mark.parametrize("case", cases, ids=ids(cases))
    def test_device(case):
        check_device(case)

    return (test_forward, test_gradient, test_device) if differentiable else (test_forward, test_device)


def listed(value):
    return value if isinstance(value, list) else [value]


def array_and_lod(value):
    if isinstance(value, tuple):
        return np.asarray(value[0]), value[1]
    return np.asarray(value), None


def widened(array):
    return array.astype(np.float64) if array.dtype.kind == "f" else array


class Built:
    """A program with one op, its feeds and its output names."""

    def __init__(self, case, with_grad=False, widen=True):
        self.case, self.feed, self.names = case, {}, {}
        self.program, self.scope = Program(), Scope()
        block = self.program.global_block()
        with program_guard(self.program, Program()):
            inputs = {slot: [self._input(block, slot, i, one, widen) for i, one in enumerate(listed(given))]
                      for slot, given in case.inputs.items()}
            outputs = {slot: [f"{slot}_out_{i}" for i in range(len(values))]
                       for slot, values in (case.outputs or case.expected()).items()}
            for names in outputs.values():
                for name in names:
                    block.create_var(name=name, dtype=None)
            block.append_op(case.type, inputs, outputs, case.attrs)
            self.outputs = outputs
            if with_grad:
                self._add_gradient(block, inputs)

    def _input(self, block, slot, i, given, widen):
        array, lengths = array_and_lod(given)
        array = widened(array) if widen else array
        name = f"{slot}_{i}"
        kept = slot in self.case.persistable
        block.create_var(name=name, shape=array.shape, dtype=array.dtype, is_data=not kept, persistable=kept,
                         lod_level=len(lengths) if lengths else 0, stop_gradient=False)
        if kept:
            self.scope.var(name).get_tensor().set(array)
            return name
        tensor = Tensor(array)
        if lengths:
            tensor.set_recursive_sequence_lengths(lengths)
        self.feed[name] = tensor if lengths else array
        return name

    def _add_gradient(self, block, inputs):
        rng = np.random.default_rng(7)
        case, targets, weights = self.case, [], []
        self.weights = {}
        for slot in case.by.split():
            for name, value in zip(self.outputs[slot], case.expected()[slot]):
                weight = rng.uniform(0.5, 1.5, np.shape(value))
                var = block.create_var(name=f"weight_{name}", shape=np.shape(value), dtype="float64",
                                       is_data=True, stop_gradient=True)
                self.weights[name] = self.feed[var.name] = weight
                targets.append(block.var(name))
                weights.append(var)
        self.sources = [name for slot in case.grads for name in inputs[slot]]
        found = gradients(targets, [block.var(name) for name in self.sources], weights)
        assert all(var is not None for var in found), f"no gradient reaches {self.sources}"
        self.gradients = [var.name for var in found]

    def run(self, fetches, place=None, feed=None, return_numpy=True):
        executor = Executor(place or CPUPlace())
        return executor.run(self.program, feed=feed or self.feed, fetch_list=fetches, scope=self.scope,
                            return_numpy=return_numpy)


def check_forward(case, place=None, widen=True):
    """The op's outputs equal the expected ones in shape, kind and value (and LoD where the case says)."""
    built = Built(case, widen=widen)
    expected = case.expected()
    flat = [(slot, i, name) for slot, names in built.outputs.items() for i, name in enumerate(names)
            if slot in expected]
    results = built.run([name for _, _, name in flat], place, return_numpy=False)
    for (slot, i, _), result in zip(flat, results):
        want = np.asarray(expected[slot][i])
        got = np.asarray(result)
        assert got.shape == want.shape, f"{slot}[{i}]: shape {got.shape}, expected {want.shape}"
        near = 1e-9 if got.dtype == np.float64 else 1e-4
        np.testing.assert_allclose(got, want, rtol=near, atol=near, err_msg=f"{slot}[{i}]")
        if slot in case.lods:
            assert result.recursive_sequence_lengths() == case.lods[slot]


def check_shapes_at_build(case):
    """The shape rule says while building what the run gives."""
    built = Built(case)
    expected = case.expected()
    for slot, names in built.outputs.items():
        for name, want in zip(names, expected.get(slot, ())):
            shape = built.program.global_block().var(name).shape
            want = np.shape(want)
            assert len(shape) == len(want) and all(a in (-1, b) for a, b in zip(shape, want)), (
                f"{slot}: built as {shape}, runs as {want}")


def check_gradient(case, place=None, step=1e-5):
    """The gradient of sum(weights * outputs) equals central differences."""
    built = Built(case, with_grad=True)
    found = built.run(built.gradients, place)
    forward = Built(case)
    for name, got in zip(built.sources, found):
        fed = forward.feed[name]
        values = fed.array if isinstance(fed, Tensor) else fed
        want = np.empty(values.shape)
        for index in np.ndindex(values.shape):
            want[index] = _difference(forward, built.weights, values, index, step)
        got = np.asarray(got.to_dense() if hasattr(got, "to_dense") else got)
        np.testing.assert_allclose(got, want, rtol=case.near * 10, atol=case.near * 10, err_msg=name)


def _difference(forward, weights, values, index, step):
    kept, totals = values[index], []
    for sign in (1, -1):
        values[index] = kept + sign * step
        outputs = forward.run(list(weights))
        totals.append(sum(float((np.asarray(out) * weight).sum())
                          for out, weight in zip(outputs, weights.values())))
    values[index] = kept
    return (totals[0] - totals[1]) / (2 * step)


def check_device(case):
    """Forward and gradient on the stand-in equal those on the host."""
    check_forward(case, StandInPlace())
    if case.grads:
        built = Built(case, with_grad=True)
        host, device = built.run(built.gradients), built.run(built.gradients, StandInPlace())
        for one, other in zip(host, device):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)
