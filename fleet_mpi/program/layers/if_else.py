"""IfElse: some rows of a batch go one way, the others another."""

from contextlib import contextmanager

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.graph.program import default_main_program
from fleet_mpi.program.layers.control_flow import ConditionalBlock
from fleet_mpi.program.layers.dynamic_rnn import around
from fleet_mpi.program.layers.tensor import assign, fill_constant


def split_lod_tensor(input, mask, level=0):
    """(the rows, or sequences, of ``input`` where ``mask`` [rows, 1] holds, the others)."""
    helper = LayerHelper("split_lod_tensor")
    true, false = (helper.create_variable_for_type_inference(input.dtype) for _ in range(2))
    helper.append_op("split_lod_tensor", {"X": [input], "Mask": [mask]}, {"OutTrue": [true], "OutFalse": [false]},
                     {"level": level})
    return true, false


def merge_lod_tensor(in_true, in_false, x, mask, level=0):
    """A row, or sequence, of ``in_true`` where ``mask`` holds, else one of ``in_false``."""
    helper = LayerHelper("merge_lod_tensor")
    out = helper.create_variable_for_type_inference(in_true.dtype)
    helper.append_op("merge_lod_tensor", {"X": [x], "Mask": [mask], "InTrue": [in_true], "InFalse": [in_false]},
                     {"Out": [out]}, {"level": level})
    return out


class IfElse:
    """Two ways for the rows of a batch::

        ways = layers.IfElse(condition)                # bool [rows, 1]
        with ways.true_block():
            ways.output(layers.fc(ways.input(x), 10))
        with ways.false_block():
            ways.output(layers.scale(ways.input(x), 2.0))
        out, = ways()                                  # rows in the order they had

    A block that no row goes through does not run.
    """

    def __init__(self, cond, name=None):
        self.cond = LayerHelper("ifelse", name=name).require(cond, "cond")
        self.parts, self.results, self.way = {}, {True: [], False: []}, None
        self.body = None

    def true_block(self):
        """The way of the rows where the condition holds."""
        return self._block(True)

    def false_block(self):
        """The way of the others."""
        return self._block(False)

    @contextmanager
    def _block(self, way):
        if self.way is not None or self.results[way]:
            raise UsageError("IfElse: each block can be entered once, and not within the other")
        self.way = way
        flags = split_lod_tensor(self.cond, self.cond)[0 if way else 1]
        with ConditionalBlock([flags]).block():
            self.body = default_main_program().current_block()
            yield
        self.way = None
        if not self.results[way]:
            raise UsageError("IfElse: expected a call of output in each block, got none")

    def input(self, x):
        """The rows of ``x`` that go the way of this block."""
        if self.way is None:
            raise UsageError("IfElse.input: call it within true_block or false_block")
        if x.name not in self.parts:
            with around(self.body):
                self.parts[x.name] = split_lod_tensor(x, self.cond)
        return self.parts[x.name][0 if self.way else 1]

    def output(self, *outs):
        """Let variables of this block be results; the other block has to give as many."""
        if self.way is None:
            raise UsageError("IfElse.output: call it within true_block or false_block")
        for one in outs:
            with around(self.body):
                # What it is where the block does not run: no row.
                result = fill_constant([0, *(max(size, 1) for size in one.shape[1:])], one.dtype, 0.0)
            assign(one, result)
            self.results[self.way].append(result)

    def __call__(self):
        """All results, their rows in the order of the condition's."""
        true, false = self.results[True], self.results[False]
        if not true or len(true) != len(false):
            raise UsageError(f"IfElse: expected equally many outputs of both blocks, at least one, got {len(true)} and "
                             f"{len(false)}")
        return [merge_lod_tensor(one, other, self.cond, self.cond) for one, other in zip(true, false)]
