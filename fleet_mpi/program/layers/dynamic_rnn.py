"""DynamicRNN: layers added within its block run for every step of sequences of different lengths."""

from contextlib import contextmanager

from fleet_mpi.errors import UsageError
from fleet_mpi.program.graph.program import default_main_program
from fleet_mpi.program.graph.variable import Variable
from fleet_mpi.program.layers import lod_rank
from fleet_mpi.program.layers.comparison import less_than
from fleet_mpi.program.layers.control_flow import While
from fleet_mpi.program.layers.math import increment
from fleet_mpi.program.layers.tensor import fill_constant, fill_constant_batch_size_like
from fleet_mpi.program.layers.tensor_array import array_read, array_write, create_array


@contextmanager
def around(block):
    """Within it, layers write into the block around this one, before the op that will run it."""
    program = block.program
    current, program.current_block_idx = program.current_block_idx, block.parent_idx
    try:
        yield
    finally:
        program.current_block_idx = current


def require_outside(body, var, who):
    """Raise where a variable that is needed before the first step is made at every step."""
    if var.name in body.vars:
        raise UsageError(f"{who}: expected a variable from outside of the block, got {var.name!r}, which each step "
                         f"makes anew: make it before the block")


class DynamicRNN:
    """A loop over the steps of sequences::

        rnn = layers.DynamicRNN()
        with rnn.block():
            word = rnn.step_input(sentence)                 # [sentences that go on, width]
            before = rnn.memory(shape=[size], value=0.0)
            hidden = layers.fc([word, before], size, act="tanh")
            rnn.update_memory(before, hidden)
            rnn.output(hidden)
        last = layers.sequence_last_step(rnn())

    At every step the batch holds the sequences that are not at their end, longest first.
    """

    def __init__(self, name=None):
        self.name = name
        self.state = "before"
        self.table = self.count = self.first_input = self.body = None
        self.memories, self.links, self.arrays, self.results = {}, [], [], []

    @contextmanager
    def block(self):
        """The body, once."""
        if self.state != "before":
            raise UsageError("DynamicRNN.block: it can be entered once")
        self.state = "inside"
        self.step = fill_constant([1], "int64", 0)
        self.more = less_than(self.step, fill_constant([1], "int64", 1))
        with While(self.more).block():
            self.body = default_main_program().current_block()
            yield
            self._next_step()
        self.state = "after"
        self.results = [lod_rank.array_to_lod_tensor(array, self.table) for array in self.arrays]

    def _next_step(self):
        if self.table is None:
            raise UsageError("DynamicRNN: expected a step_input in its block, got none: it says how many steps there "
                             "are")
        increment(self.step)
        for array, new in self.links:
            array_write(new, self.step, array)
        less_than(self.step, self.count, cond=self.more)

    def step_input(self, x, level=0):
        """The elements of ``x`` at this step: of every sequence of a LoD level that goes on, one."""
        self._check(x, "step_input")
        require_outside(self.body, x, "DynamicRNN.step_input")
        with around(self.body):
            if self.table is None:
                self.table = lod_rank.lod_rank_table(x, level)
                self.count = lod_rank.max_sequence_len(self.table)
                less_than(self.step, self.count, cond=self.more)
            steps = lod_rank.lod_tensor_to_array(x, self.table)
            self.first_input = steps if self.first_input is None else self.first_input
        return array_read(steps, self.step)

    def static_input(self, x):
        """What each sequence has of ``x`` (its sequence, or its row) at every step, as long as it goes on."""
        self._check(x, "static_input")
        require_outside(self.body, x, "DynamicRNN.static_input")
        self._require_table("static_input")
        with around(self.body):
            ordered = lod_rank.reorder_lod_tensor_by_rank(x, self.table)
        return lod_rank.shrink_memory(ordered, self.step, self.table)

    def memory(self, init=None, shape=None, value=0.0, need_reorder=False, dtype="float32"):
        """A state: at the first step ``init`` (in the table's order; with ``need_reorder`` in the sequences' own) or
        ``value`` everywhere, then what ``update_memory`` gave it at the step before."""
        self._check(init, "memory", optional=True)
        self._require_table("memory")
        if init is None and shape is None:
            raise UsageError("DynamicRNN.memory: expected init or shape, got neither")
        with around(self.body):
            array = array_write(self._first(init, shape, value, need_reorder, dtype), fill_constant([1], "int64", 0))
        before = lod_rank.shrink_memory(array_read(array, self.step), self.step, self.table)
        self.memories[before.name] = array
        return before

    def _first(self, init, shape, value, need_reorder, dtype):
        if init is not None:
            require_outside(self.body, init, "DynamicRNN.memory")
            return lod_rank.reorder_lod_tensor_by_rank(init, self.table) if need_reorder else init
        like = array_read(self.first_input, fill_constant([1], "int64", 0))
        made = fill_constant_batch_size_like(like, [-1, *shape], dtype, value)
        made.stop_gradient = False
        return made

    def update_memory(self, ex_mem, new_mem):
        """Let a memory be this at the next step."""
        self._check(ex_mem, "update_memory")
        self._check(new_mem, "update_memory")
        array = self.memories.get(ex_mem.name)
        if array is None:
            raise UsageError(f"DynamicRNN.update_memory: {ex_mem.name!r} is no memory of this block: call memory first")
        self.links.append((array, new_mem))

    def output(self, *outputs):
        """Let the values of all steps be results."""
        for one in outputs:
            self._check(one, "output")
            with around(self.body):
                array = create_array(one.dtype)
            array_write(one, self.step, array)
            self.arrays.append(array)

    def __call__(self, *args, **kwargs):
        """The results, with the sequences of the step input: one variable, or all of them."""
        if self.state != "after" or not self.results:
            raise UsageError("DynamicRNN: call it behind its block, in which output was called")
        return self.results[0] if len(self.results) == 1 else list(self.results)

    def _check(self, var, method, optional=False):
        if self.state != "inside":
            raise UsageError(f"DynamicRNN.{method}: call it within `with rnn.block():`")
        if not isinstance(var, Variable) and not (optional and var is None):
            raise UsageError(f"DynamicRNN.{method}: expected a variable, got {type(var).__name__}")

    def _require_table(self, method):
        if self.table is None:
            raise UsageError(f"DynamicRNN.{method}: call step_input first, it tells the order of the sequences")
