"""Long short-term memory: over whole sequences (``lstm``), and one step (``lstm_unit``)."""

from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.recurrent import ACTIVATIONS, Walk, activation, arrays_of
from fleet_mpi.program.ops.sequence import forward_level, last_level


@op("lstm", "Input H0? C0? Weight Bias", "Hidden Cell BatchGate", grad_reads="H0 C0 Weight Bias Hidden Cell BatchGate",
    attrs={"use_peepholes": True, "is_reverse": False, "gate_activation": "sigmoid", "cell_activation": "tanh",
           "candidate_activation": "tanh"})
class Lstm:
    """Hidden and cell state at every row; ``Input`` holds the rows' products with the input weights.

    Columns of Input, Weight [D, 4D] and Bias: candidate, input gate, forget gate, output gate; with
    peepholes Bias ends with the weights by which the cell acts on those three gates. ``BatchGate`` keeps
    all four, activated, in the order of time for the gradient.
    """

    def infer(k):
        """[rows, D] each."""
        rows, wide = k.shape("Input")
        size, bias = k.shape("Weight")[0], (7 if k.attr("use_peepholes") else 4) * k.shape("Weight")[0]
        if k.shape("Weight") != (size, 4 * size) or wide not in (-1, 4 * size) or k.shape("Bias") != (1, bias):
            k.fail(f"expected Input [rows, 4 D], Weight [D, 4 D] and Bias [1, {bias // max(size, 1)} D], got "
                   f"{k.shape('Input')}, {k.shape('Weight')}, {k.shape('Bias')}")
        if k.concrete:
            last_level(k, "Input")
        k.set("Hidden", (rows, size), lod=k.lod("Input"))
        k.set("Cell", (rows, size), lod=k.lod("Input"))
        k.set("BatchGate", (rows, 4 * size), lod=())

    def run(k):
        """Step by step over all sequences at once."""
        return LstmCall(k, last_level(k, "Input")).forward

    def grad(k):
        """The steps backwards, then the weights' gradients as one product."""
        return LstmCall(k, forward_level(k, "Input")).backward


class LstmCall:
    """One lstm op, bound."""

    def __init__(self, k, level):
        self.walk, self.xp, self.given = Walk(k, level), k.xp, arrays_of(k)
        self.weight, self.bias = k["Weight"], k["Bias"].reshape(-1)
        self.size = self.weight.shape[1] // 4
        self.gate, self.gate_slope = activation(k, "gate_activation")
        self.squash, self.squash_slope = activation(k, "cell_activation")
        self.candidate, self.candidate_slope = activation(k, "candidate_activation")
        self.first_hidden, self.first_cell, self.gates = k["H0"], k["C0"], k["BatchGate"]
        parts = [self.bias[i * self.size:(i + 1) * self.size] for i in range(4, 7)]
        self.has_peepholes = k.attr("use_peepholes")
        self.peepholes = parts if self.has_peepholes else [0.0, 0.0, 0.0]

    def forward(self):
        """Fill Hidden, Cell and BatchGate."""
        given, walk, size, dtype = self.given, self.walk, self.size, self.weight.dtype
        values = walk.enter(given("Input"), None, 4 * size, dtype)
        values += self.bias[:4 * size]
        hidden, cell = (walk.enter(None, first, size, dtype) for first in (self.first_hidden, self.first_cell))
        for begin, end, before in walk.steps:
            previous = slice(before, before + end - begin)
            if before or self.first_hidden is not None:
                values[begin:end] += self.xp.dot(hidden[previous], self.weight)
            self._step(values[begin:end], cell[previous], cell[begin:end], hidden[begin:end])
        self.xp.copyto(self.gates, values[walk.sequences:])
        walk.leave(hidden, given("Hidden"))
        walk.leave(cell, given("Cell"))

    def _step(self, values, cell_before, cell, hidden):
        candidate, enters, forgets, leaves = self._gates(values)
        candidate[...] = self.candidate(candidate)
        enters[...] = self.gate(enters + cell_before * self.peepholes[0])
        forgets[...] = self.gate(forgets + cell_before * self.peepholes[1])
        cell[...] = self.bounded(candidate * enters + cell_before * forgets)
        leaves[...] = self.gate(leaves + cell * self.peepholes[2])
        hidden[...] = leaves * self.squash(cell)

    def bounded(self, cell):
        """The cell state as it is; lstmp may clip it."""
        return cell

    def bounded_back(self, cell, dcell):
        """Drop the gradient where the cell state was clipped."""

    def _gates(self, values):
        return [values[:, i * self.size:(i + 1) * self.size] for i in range(4)]

    def backward(self):
        """Fill the gradients that are wanted."""
        given, walk, size, dtype = self.given, self.walk, self.size, self.weight.dtype
        hidden = walk.enter(given("Hidden"), self.first_hidden, size, dtype)
        cell = walk.enter(given("Cell"), self.first_cell, size, dtype)
        dhidden, dcell = (walk.enter(given(slot), None, size, dtype) for slot in ("Hidden@GRAD", "Cell@GRAD"))
        dvalues = self.xp.zeros((walk.count, 4 * size), dtype)
        back = self.weight.T
        for begin, end, before in reversed(walk.steps):
            previous = slice(before, before + end - begin)
            gates = self.gates[begin - walk.sequences:end - walk.sequences]
            dcell[previous] += self._step_back(gates, cell[previous], cell[begin:end], dhidden[begin:end],
                                               dcell[begin:end], dvalues[begin:end])
            dhidden[previous] += self.xp.dot(dvalues[begin:end], back)
        walk.leave_first(dhidden, given("H0@GRAD"))
        walk.leave_first(dcell, given("C0@GRAD"))
        if given("Input@GRAD") is not None:
            walk.leave(dvalues, given("Input@GRAD"))
        self._weights_back(dvalues[walk.sequences:], hidden, cell)

    def _step_back(self, gates, cell_before, cell, dhidden, dcell, dvalues):
        """Fill one step's gradients before the activations; returns that of the cell before."""
        candidate, enters, forgets, leaves = self._gates(gates)
        dcandidate, denters, dforgets, dleaves = self._gates(dvalues)
        squashed = self.squash(cell)
        dleaves[...] = dhidden * squashed * self.gate_slope(leaves)
        dcell += dhidden * leaves * self.squash_slope(squashed) + dleaves * self.peepholes[2]
        self.bounded_back(cell, dcell)
        dcandidate[...] = dcell * enters * self.candidate_slope(candidate)
        denters[...] = dcell * candidate * self.gate_slope(enters)
        dforgets[...] = dcell * cell_before * self.gate_slope(forgets)
        return dcell * forgets + denters * self.peepholes[0] + dforgets * self.peepholes[1]

    def _weights_back(self, dvalues, hidden, cell):
        given, walk, size = self.given, self.walk, self.size
        if given("Weight@GRAD") is not None:
            self.xp.dot(hidden[walk.before].T, dvalues, given("Weight@GRAD"))
        if given("Bias@GRAD") is None:
            return
        dbias = given("Bias@GRAD").reshape(-1)
        dbias[:4 * size] = dvalues.sum(axis=0)
        if self.has_peepholes:
            _, denters, dforgets, dleaves = self._gates(dvalues)
            pairs = ((denters, cell[walk.before]), (dforgets, cell[walk.before]), (dleaves, cell[walk.sequences:]))
            for i, (values, states) in enumerate(pairs, 4):
                dbias[i * size:(i + 1) * size] = (values * states).sum(axis=0)


@op("lstm_unit", "X C_prev", "C H", attrs={"forget_bias": 0.0}, grad_reads="X C_prev C")
class LstmUnit:
    """One step; X's columns are input gate, forget gate, output gate and candidate, before activation."""

    def infer(k):
        """As the cell state before."""
        size = k.shape("C_prev")[1]
        if k.shape("X")[1] != 4 * size:
            k.fail(f"expected X with 4 x {size} columns, got {list(k.shape('X'))}")
        k.set("C", k.shape("C_prev"))
        k.set("H", k.shape("C_prev"))

    def run(k):
        x, before, cell, hidden, xp = k["X"], k["C_prev"], k["C"], k["H"], k.xp

        def run():
            enters, forgets, leaves, candidate = _unit_gates(k, x)
            xp.add(forgets * before, enters * candidate, out=cell)
            xp.multiply(leaves, xp.tanh(cell), out=hidden)
        return run

    def grad(k):
        """The gates are computed again."""
        x, before, cell, xp = k["X"], k["C_prev"], k["C"], k.xp
        given_cell, given_hidden, dbefore, dx = (k[slot] for slot in ("C@GRAD", "H@GRAD", "C_prev@GRAD", "X@GRAD"))

        def run():
            (enters, forgets, leaves, candidate), squashed = _unit_gates(k, x), xp.tanh(cell)
            dhidden = xp.zeros_like(squashed) if given_hidden is None else given_hidden
            dcell = dhidden * leaves * (1 - squashed * squashed) + (0.0 if given_cell is None else given_cell)
            if dbefore is not None:
                xp.multiply(dcell, forgets, out=dbefore)
            if dx is not None:
                dx[...] = xp.concatenate([dcell * candidate * enters * (1 - enters),
                                          dcell * before * forgets * (1 - forgets),
                                          dhidden * squashed * leaves * (1 - leaves),
                                          dcell * enters * (1 - candidate * candidate)], axis=1)
        return run


def _unit_gates(k, x):
    """Input, forget and output gate and candidate, activated."""
    sigmoid, size = ACTIVATIONS["sigmoid"][0], x.shape[1] // 4
    enters, forgets, leaves, candidate = (x[:, i * size:(i + 1) * size] for i in range(4))
    return (sigmoid(k.xp, enters), sigmoid(k.xp, forgets + k.attr("forget_bias")), sigmoid(k.xp, leaves),
            k.xp.tanh(candidate))
