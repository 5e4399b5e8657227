"""Gated recurrent units: over whole sequences (``gru``), and one step (``gru_unit``).

Columns of the input and the bias: update gate, reset gate, candidate. ``Weight`` [D, 3D] is, as in the
original's files, two matrices one behind the other in memory: [D, 2D] of the gates, [D, D] of the candidate.
"""

from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.recurrent import Walk, activation, arrays_of
from fleet_mpi.program.ops.sequence import forward_level, last_level


def _check(k, size):
    if k.shape("Weight") != (size, 3 * size) or k.shape("Input")[1] not in (-1, 3 * size) \
            or k.has("Bias") and k.shape("Bias") != (1, 3 * size):
        k.fail(f"expected Input [rows, 3 D], Weight [D, 3 D] and Bias [1, 3 D] with D = {size}, got "
               f"{k.shape('Input')}, {k.shape('Weight')}" + (f", {k.shape('Bias')}" if k.has("Bias") else ""))


def _split(weight):
    """The gates' matrix and the candidate's, as views."""
    size, flat = weight.shape[0], weight.reshape(-1)
    return flat[:2 * size * size].reshape(size, 2 * size), flat[2 * size * size:].reshape(size, size)


class Cell:
    """The arithmetic of one step."""

    def __init__(self, k, candidate_attr):
        self.dot, self.origin = k.xp.dot, k.attr("origin_mode")
        self.of_gates, self.of_candidate = _split(k["Weight"])
        self.size = self.of_gates.shape[0]
        self.gate, self.gate_slope = activation(k, "gate_activation")
        self.candidate, self.candidate_slope = activation(k, candidate_attr)

    def parts(self, values):
        """Update gate, reset gate, candidate."""
        return [values[:, i * self.size:(i + 1) * self.size] for i in range(3)]

    def step(self, values, before, hidden):
        """Activate ``values`` in place and fill ``hidden``; returns what the reset gate lets through."""
        update, reset, candidate = self.parts(values)
        gates = values[:, :2 * self.size]
        gates[...] = self.gate(gates + self.dot(before, self.of_gates))
        kept = reset * before
        candidate[...] = self.candidate(candidate + self.dot(kept, self.of_candidate))
        new, old = (before, candidate) if self.origin else (candidate, before)
        hidden[...] = old + update * (new - old)
        return kept

    def step_back(self, values, before, dhidden, dvalues):
        """Fill the gradient before the activations; returns that of the hidden state before."""
        update, reset, candidate = self.parts(values)
        dupdate, dreset, dcandidate = self.parts(dvalues)
        of_candidate, of_before = (1 - update, update) if self.origin else (update, 1 - update)
        dcandidate[...] = dhidden * of_candidate * self.candidate_slope(candidate)
        dkept = self.dot(dcandidate, self.of_candidate.T)
        dupdate[...] = dhidden * (before - candidate if self.origin else candidate - before) * self.gate_slope(update)
        dreset[...] = dkept * before * self.gate_slope(reset)
        return dhidden * of_before + dkept * reset + self.dot(dvalues[:, :2 * self.size], self.of_gates.T)

    def weights_back(self, dweight, dbias, values, before, dvalues):
        """Fill the gradients of Weight and Bias where they are wanted."""
        if dweight is not None:
            dgates, dcandidate = _split(dweight)
            dgates[...] = self.dot(before.T, dvalues[:, :2 * self.size])
            kept = self.parts(values)[1] * before
            dcandidate[...] = self.dot(kept.T, dvalues[:, 2 * self.size:])
        if dbias is not None:
            dbias[...] = dvalues.sum(axis=0).reshape(1, -1)


@op("gru", "Input H0? Weight Bias?", "Hidden BatchGate", grad_reads="H0 Weight Hidden BatchGate",
    attrs={"activation": "tanh", "gate_activation": "sigmoid", "is_reverse": False, "origin_mode": False})
class Gru:
    """The hidden state at every row; ``Input`` holds the rows' products with the input weights.

    ``BatchGate`` keeps gates and candidate, activated, in the order of time for the gradient.
    """

    def infer(k):
        """[rows, D]."""
        rows, size = k.shape("Input")[0], k.shape("Weight")[0]
        _check(k, size)
        if k.concrete:
            last_level(k, "Input")
        k.set("Hidden", (rows, size), lod=k.lod("Input"))
        k.set("BatchGate", (rows, 3 * size), lod=())

    def run(k):
        """Step by step over all sequences at once."""
        walk, cell = Walk(k, last_level(k, "Input")), Cell(k, "activation")
        x, bias, first, out, gates, xp = k["Input"], k["Bias"], k["H0"], k["Hidden"], k["BatchGate"], k.xp

        def run():
            values = walk.enter(x, None, 3 * cell.size, x.dtype)
            if bias is not None:
                values += bias
            hidden = walk.enter(None, first, cell.size, x.dtype)
            for begin, end, before in walk.steps:
                cell.step(values[begin:end], hidden[before:before + end - begin], hidden[begin:end])
            xp.copyto(gates, values[walk.sequences:])
            walk.leave(hidden, out)
        return run

    def grad(k):
        """The steps backwards, then the weights' gradients as one product."""
        walk, cell = Walk(k, forward_level(k, "Input")), Cell(k, "activation")
        gates, zeros, given = k["BatchGate"], k.xp.zeros, arrays_of(k)

        def run():
            hidden = walk.enter(given("Hidden"), given("H0"), cell.size, gates.dtype)
            dhidden = walk.enter(given("Hidden@GRAD"), None, cell.size, gates.dtype)
            dvalues = zeros((walk.count, 3 * cell.size), gates.dtype)
            for begin, end, before in reversed(walk.steps):
                previous = slice(before, before + end - begin)
                dhidden[previous] += cell.step_back(gates[begin - walk.sequences:end - walk.sequences],
                                                    hidden[previous], dhidden[begin:end], dvalues[begin:end])
            walk.leave_first(dhidden, given("H0@GRAD"))
            if given("Input@GRAD") is not None:
                walk.leave(dvalues, given("Input@GRAD"))
            cell.weights_back(given("Weight@GRAD"), given("Bias@GRAD"), gates, hidden[walk.before],
                              dvalues[walk.sequences:])
        return run


@op("gru_unit", "Input HiddenPrev Weight Bias?", "Gate ResetHiddenPrev Hidden", grad_reads="HiddenPrev Weight Gate",
    attrs={"activation": 2, "gate_activation": 1, "origin_mode": False})
class GruUnit:
    """One step. ``Gate`` holds gates and candidate, ``ResetHiddenPrev`` what the reset gate lets through."""

    def infer(k):
        """[rows, D], and 3 D columns of gates."""
        rows, size = k.shape("HiddenPrev")
        _check(k, size)
        k.set("Gate", (rows, 3 * size))
        k.set("ResetHiddenPrev", (rows, size))
        k.set("Hidden", (rows, size))

    def run(k):
        """As one step of gru."""
        cell, xp, gate, kept = Cell(k, "activation"), k.xp, k["Gate"], k["ResetHiddenPrev"]
        x, bias, before, hidden = k["Input"], k["Bias"], k["HiddenPrev"], k["Hidden"]

        def run():
            xp.copyto(gate, x)
            if bias is not None:
                xp.add(gate, bias, out=gate)
            xp.copyto(kept, cell.step(gate, before, hidden))
        return run

    def grad(k):
        """As one step of gru back; only Hidden hands a gradient on."""
        cell, gate, before, dhidden = Cell(k, "activation"), k["Gate"], k["HiddenPrev"], k["Hidden@GRAD"]
        if dhidden is None:
            k.fail("a gradient flows through Hidden only, not through Gate or ResetHiddenPrev")
        dvalues = k["Input@GRAD"] if k.has("Input@GRAD") else k.scratch(gate.shape, gate.dtype)
        given = arrays_of(k)

        def run():
            before_back = cell.step_back(gate, before, dhidden, dvalues)
            if given("HiddenPrev@GRAD") is not None:
                given("HiddenPrev@GRAD")[...] = before_back
            cell.weights_back(given("Weight@GRAD"), given("Bias@GRAD"), gate, before, dvalues)
        return run
