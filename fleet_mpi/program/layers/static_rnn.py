"""StaticRNN: layers added within its block run for every step of an input [steps, batch, ...]."""

from contextlib import contextmanager

from fleet_mpi.errors import UsageError
from fleet_mpi.program.graph import unique_name
from fleet_mpi.program.graph.program import reads_from_outside
from fleet_mpi.program.graph.variable import Variable
from fleet_mpi.program.layers.control_flow import nested_block
from fleet_mpi.program.layers.dynamic_rnn import around, require_outside
from fleet_mpi.program.layers.tensor import fill_constant_batch_size_like


class StaticRNN:
    """A loop over the first dimension of its inputs::

        rnn = layers.StaticRNN()
        with rnn.step():
            word = rnn.step_input(sentences)                # [batch, width] of sentences [steps, batch, width]
            before = rnn.memory(shape=[-1, size], batch_ref=word)
            hidden = layers.fc([word, before], size, act="tanh")
            rnn.update_memory(before, hidden)
            rnn.step_output(hidden)
        outputs = rnn()                                     # [steps, batch, size]
    """

    def __init__(self, name=None):
        self.name = unique_name.generate(name or "static_rnn")
        self.status, self.body, self.is_reverse = "before", None, False
        self.inputs, self.memories, self.outputs, self.results = {}, {}, {}, []

    @contextmanager
    def step(self):
        """The body, once."""
        if self.status != "before":
            raise UsageError("StaticRNN.step: it can be entered once")
        self.status = "inside"
        with nested_block() as self.body:
            yield
        self.status = "after"
        self._complete()

    def _variable(self, word, dtype, shape):
        return self.body.create_var(name=unique_name.generate(f"{self.name}.{word}"), dtype=dtype, shape=shape)

    def step_input(self, x):
        """One step of ``x``, without its first dimension."""
        self._check(x, "step_input")
        require_outside(self.body, x, "StaticRNN.step_input")
        if not x.shape:
            raise UsageError(f"StaticRNN.step_input: expected [steps, ...], got {x.name!r} of shape {x.shape}")
        counts = {outer.shape[0] for outer in self.inputs.values()} | {x.shape[0]}
        if len(counts - {-1}) > 1:
            raise UsageError(f"StaticRNN.step_input: expected equally many steps of all inputs, got "
                             f"{sorted(counts - {-1})}")
        now = self._variable("input", x.dtype, x.shape[1:])
        now.stop_gradient = x.stop_gradient
        self.inputs[now.name] = x
        return now

    def memory(self, init=None, shape=None, batch_ref=None, init_value=0.0, init_batch_dim_idx=0, ref_batch_dim_idx=1):
        """A state: at the first step ``init``, or ``init_value`` in a shape whose batch is that of ``batch_ref``."""
        self._check(init, "memory", optional=True)
        if init is not None:
            require_outside(self.body, init, "StaticRNN.memory")
        else:
            init = self._first(shape, batch_ref, init_value, init_batch_dim_idx, ref_batch_dim_idx)
        before = self._variable("memory", init.dtype, init.shape)
        self.memories[before.name] = [init, None]
        return before

    def _first(self, shape, batch_ref, value, out_index, ref_index):
        if shape is None or batch_ref is None:
            raise UsageError("StaticRNN.memory: expected init, or shape and batch_ref")
        like = self.inputs.get(batch_ref.name, batch_ref)
        require_outside(self.body, like, "StaticRNN.memory")
        with around(self.body):
            made = fill_constant_batch_size_like(like, shape, like.dtype if like._dtype.kind == "f" else "float32",
                                                 value,
                                                 ref_index, out_index)
        made.stop_gradient = False
        return made

    def update_memory(self, mem, var):
        """Let a memory be this at the next step."""
        self._check(mem, "update_memory")
        self._check(var, "update_memory")
        if mem.name not in self.memories:
            raise UsageError(f"StaticRNN.update_memory: {mem.name!r} is no memory of this step: call memory first")
        self.memories[mem.name][1] = var

    def step_output(self, o):
        """Let the values of all steps be a result."""
        self._check(o, "step_output")
        self.outputs[unique_name.generate(f"{self.name}.out")] = o

    def output(self, *outputs):
        """Let the values of all steps be results."""
        for one in outputs:
            self.step_output(one)

    def _complete(self):
        for name, (_, new) in self.memories.items():
            if new is None:
                raise UsageError(f"StaticRNN: the memory {name!r} was never updated: call update_memory")
        if not self.inputs:
            raise UsageError("StaticRNN: expected a step_input in its step, got none: it says how many steps there are")
        block = self.body.parent
        self.results = [block.create_var(name=name, dtype=one.dtype) for name, one in self.outputs.items()]
        inner = [var.name for var in self.outputs.values()]
        block.append_op(
            "recurrent",
            {"inputs": list(self.inputs.values()), "initial_states": [init for init, _ in self.memories.values()],
             "parameters": sorted(reads_from_outside(self.body))}, {"outputs": self.results},
            {"sub_block": self.body.idx, "step_inputs": list(self.inputs), "ex_states": list(self.memories),
             "states": [new.name for _, new in self.memories.values()], "step_outputs": inner,
             "reverse": self.is_reverse})

    def __call__(self, *args, **kwargs):
        """The results [steps, batch, ...]: one variable, or all of them."""
        if self.status != "after" or not self.results:
            raise UsageError("StaticRNN: call it behind its step, in which step_output was called")
        return self.results[0] if len(self.results) == 1 else list(self.results)

    def _check(self, var, method, optional=False):
        if self.status != "inside":
            raise UsageError(f"StaticRNN.{method}: call it within `with rnn.step():`")
        if not isinstance(var, Variable) and not (optional and var is None):
            raise UsageError(f"StaticRNN.{method}: expected a variable, got {type(var).__name__}")
