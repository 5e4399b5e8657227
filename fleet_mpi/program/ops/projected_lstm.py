"""Long short-term memory with a projection of the hidden state, which is what the next step gets (``lstmp``)."""

from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.lstm import LstmCall
from fleet_mpi.program.ops.recurrent import activation
from fleet_mpi.program.ops.sequence import forward_level, last_level


@op("lstmp", "Input H0? C0? Weight ProjWeight Bias", "Projection Cell BatchGate BatchHidden",
    grad_reads="H0 C0 Weight ProjWeight Bias Projection Cell BatchGate BatchHidden",
    attrs={"use_peepholes": True, "is_reverse": False, "gate_activation": "sigmoid", "cell_activation": "tanh",
           "candidate_activation": "tanh", "proj_activation": "tanh", "cell_clip": 0.0, "proj_clip": 0.0})
class Lstmp:
    """Projection [rows, P] and cell state [rows, D] at every row; otherwise as ``lstm``.

    Weight is [P, 4 D], ProjWeight [D, P], H0 [sequences, P]. ``BatchHidden`` keeps the hidden states before the
    projection, in the order of time. Clips of 0 do nothing.
    """

    def infer(k):
        rows, wide = k.shape("Input")
        size, projected = k.shape("ProjWeight")
        bias = (7 if k.attr("use_peepholes") else 4) * size
        if k.shape("Weight") != (projected, 4 * size) or wide not in (-1, 4 * size) or k.shape("Bias") != (1, bias):
            k.fail(f"expected Input [rows, 4 D], Weight [P, 4 D], ProjWeight [D, P] and Bias [1, "
                   f"{bias // max(size, 1)} D], got {k.shape('Input')}, {k.shape('Weight')}, {k.shape('ProjWeight')}, "
                   f"{k.shape('Bias')}")
        if k.concrete:
            last_level(k, "Input")
        k.set("Projection", (rows, projected), lod=k.lod("Input"))
        k.set("Cell", (rows, size), lod=k.lod("Input"))
        k.set("BatchGate", (rows, 4 * size), lod=())
        k.set("BatchHidden", (rows, size), lod=())

    def run(k):
        """Step by step over all sequences at once."""
        return LstmpCall(k, last_level(k, "Input")).forward

    def grad(k):
        """The steps backwards, then the weights' gradients as products."""
        return LstmpCall(k, forward_level(k, "Input")).backward


class LstmpCall(LstmCall):
    """One lstmp op, bound."""

    def __init__(self, k, level):
        super().__init__(k, level)
        self.project, self.project_slope = activation(k, "proj_activation")
        self.proj_weight, self.hidden = k["ProjWeight"], k["BatchHidden"]
        self.cell_clip, self.proj_clip = k.attr("cell_clip"), k.attr("proj_clip")

    def bounded(self, cell):
        """Clip the cell state."""
        return self.xp.clip(cell, -self.cell_clip, self.cell_clip) if self.cell_clip > 0 else cell

    def bounded_back(self, cell, dcell):
        """Drop the gradient where the cell state was clipped."""
        if self.cell_clip > 0:
            dcell *= abs(cell) < self.cell_clip

    def forward(self):
        """Fill Projection, Cell, BatchGate and BatchHidden."""
        given, walk, size, dtype = self.given, self.walk, self.size, self.weight.dtype
        values = walk.enter(given("Input"), None, 4 * size, dtype)
        values += self.bias[:4 * size]
        projection = walk.enter(None, self.first_hidden, self.weight.shape[0], dtype)
        cell, hidden = walk.enter(None, self.first_cell, size, dtype), walk.enter(None, None, size, dtype)
        for begin, end, before in walk.steps:
            previous = slice(before, before + end - begin)
            values[begin:end] += self.xp.dot(projection[previous], self.weight)
            self._step(values[begin:end], cell[previous], cell[begin:end], hidden[begin:end])
            found = self.project(self.xp.dot(hidden[begin:end], self.proj_weight))
            projection[begin:end] = self.xp.clip(found, -self.proj_clip,
                                                 self.proj_clip) if self.proj_clip > 0 else found
        self.xp.copyto(self.gates, values[walk.sequences:])
        self.xp.copyto(self.hidden, hidden[walk.sequences:])
        walk.leave(projection, given("Projection"))
        walk.leave(cell, given("Cell"))

    def backward(self):
        """Fill the gradients that are wanted."""
        given, walk, size, dtype = self.given, self.walk, self.size, self.weight.dtype
        width = self.weight.shape[0]
        projection = walk.enter(given("Projection"), self.first_hidden, width, dtype)
        cell = walk.enter(given("Cell"), self.first_cell, size, dtype)
        dprojection = walk.enter(given("Projection@GRAD"), None, width, dtype)
        dcell = walk.enter(given("Cell@GRAD"), None, size, dtype)
        dvalues = self.xp.zeros((walk.count, 4 * size), dtype)
        for begin, end, before in reversed(walk.steps):
            previous = slice(before, before + end - begin)
            self._before_projection(projection[begin:end], dprojection[begin:end])
            gates = self.gates[begin - walk.sequences:end - walk.sequences]
            dhidden = self.xp.dot(dprojection[begin:end], self.proj_weight.T)
            dcell[previous] += self._step_back(gates, cell[previous], cell[begin:end], dhidden, dcell[begin:end],
                                               dvalues[begin:end])
            dprojection[previous] += self.xp.dot(dvalues[begin:end], self.weight.T)
        walk.leave_first(dprojection, given("H0@GRAD"))
        walk.leave_first(dcell, given("C0@GRAD"))
        if given("Input@GRAD") is not None:
            walk.leave(dvalues, given("Input@GRAD"))
        if given("ProjWeight@GRAD") is not None:
            self.xp.dot(self.hidden.T, dprojection[walk.sequences:], given("ProjWeight@GRAD"))
        self._weights_back(dvalues[walk.sequences:], projection, cell)

    def _before_projection(self, projection, dprojection):
        """Take the gradient back through clip and activation, in place."""
        if self.proj_clip > 0:
            dprojection *= abs(projection) < self.proj_clip
        dprojection *= self.project_slope(projection)
