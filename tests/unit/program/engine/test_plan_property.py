"""Random programs give the same bits however they are run.

A plan with all temporaries in shared memory, one where each has its own, one without fused ops, and the
interpreter, which binds op by op and makes no views: all must agree, step by step, for any batch sizes and
any fetches, in what is fetched and in what stays in the scope.
"""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fleet_mpi.program.build.backward import append_backward
from fleet_mpi.program.build.clip import ClipByGlobalNorm
from fleet_mpi.program.build.regularizers import L2Decay
from fleet_mpi.program.engine import executor, memory, plan
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.program.graph import unique_name
from fleet_mpi.program.graph.program import Program, default_main_program, program_guard
from fleet_mpi.program.layers import nn
from fleet_mpi.program.layers.data import data
from fleet_mpi.program.optimizers.plain import SGD, Adagrad, Adam, Momentum
from tests.unit.program.building import apply

WIDTH = 6  # every variable is [batch, 6], so that any can be combined with any
IDS = 5


class Builder:
    """A program under construction: the variables made so far, and one method for every kind of step."""

    def __init__(self):
        self.x = data("x", [WIDTH], stop_gradient=False)
        self.ids = data("ids", [1], dtype="int64")
        self.made = [self.x]

    def pick(self, number):
        """One of the variables made so far: the latest for 0, the fed one for 11."""
        return self.x if number == 11 else self.made[-1 - number % len(self.made)]

    def parameter(self, shape, number=0):
        """A parameter; for an odd number one that may exist already, and is then used once more."""
        name = f"shared_{len(shape)}" if number % 2 else unique_name.generate("param")
        return default_main_program().global_block().create_parameter(name=name, shape=shape)

    def op(self, type, inputs, slot="Out", **attrs):
        self.made.append(apply(type, inputs, slot=slot, **attrs))

    def binary(self, a, b, c):
        kinds = ("add", "sub", "mul", "max", "min", "add")
        self.op(f"elementwise_{kinds[c % 6]}", {"X": self.pick(a), "Y": self.pick(b)})

    def bias(self, a, b, c):
        kinds = ("add", "add", "mul", "sub")
        self.op(f"elementwise_{kinds[c % 4]}", {"X": self.pick(a), "Y": self.parameter([WIDTH], b)}, axis=1)

    def product(self, a, b, c):
        types = (("mul", {}), ("matmul", {}), ("matmul", {"transpose_Y": True}))
        type, attrs = types[c % 3]
        self.op(type, {"X": self.pick(a), "Y": self.parameter([WIDTH, WIDTH], b)}, **attrs)

    def activation(self, a, b, c):
        types = ("relu", "relu", "sigmoid", "tanh", "square", "leaky_relu", "abs", "softmax", "log_softmax", "gelu",
                 "swish", "softsign")
        self.op("tanh", {"X": self.pick(a)})  # keeps what is squared within bounds
        self.op(types[b % len(types)], {"X": self.pick(c % 2 * a)})

    def scaling(self, a, b, c):
        steps = (("scale", {"scale": 0.5, "bias": 0.25}), ("clip", {"min": -0.5, "max": 0.5}),
                 ("scale", {"scale": -1.0, "bias_after_scale": False, "bias": 1.0}), ("cumsum", {"axis": 1}))
        type, attrs = steps[b % 4]
        self.op(type, {"X": self.pick(a)}, **attrs)

    def dropped(self, a, b, c):
        self.made.append(nn.dropout(self.pick(a), 0.4))

    def folded(self, a, b, c):
        """Views, and a transposed copy of one."""
        inner = apply("reshape2", {"X": self.pick(a)}, shape=[-1, 2, 3])
        if b % 3 == 0:
            inner = apply("transpose2", {"X": inner}, axis=[0, 2, 1])
        elif b % 3 == 1:
            inner = apply("unsqueeze2", {"X": inner}, axes=[1])
        self.op("flatten2" if c % 2 else "reshape2", {"X": inner}, **({} if c % 2 else {"shape": [-1, WIDTH]}))

    def copied(self, a, b, c):
        self.op("assign", {"X": self.pick(a)})

    def summed(self, a, b, c):
        self.op("sum", {"X": [self.pick(a), self.pick(b), self.pick(c)][:1 + c % 3]})

    def joined(self, a, b, c):
        """Two side by side, then apart again in other pieces."""
        both = apply("concat", {"X": [self.pick(a), self.pick(b)]}, axis=1)
        block = default_main_program().global_block()
        pieces = [block.create_var(name=unique_name.generate("piece"), dtype="float32") for _ in range(2)]
        block.append_op("split", {"X": both}, {"Out": pieces}, {"axis": 1, "num": 2})
        self.made += pieces if c % 2 else pieces[1:]

    def reduced(self, a, b, c):
        attrs = {"dim": [b % 2], "keep_dim": True}
        total = apply("reduce_mean" if c % 2 else "reduce_sum", {"X": self.pick(a)}, **attrs)
        self.op("elementwise_sub", {"X": self.pick(c), "Y": total})

    def normalized(self, a, b, c):
        self.made.append((nn.layer_norm if c % 3 == 2 else nn.batch_norm)(self.pick(a)))

    def rectified(self, a, b, c):
        """What is fused: relu of a norm or a sum, which somebody else may read as well."""
        (self.normalized, self.bias, self.binary)[b % 3](a, c, 0)
        inner = self.made[-1] if c % 2 else self.made.pop()
        self.op("relu", {"X": inner})

    def looked_up(self, a, b, c):
        rows = apply("lookup_table", {"W": self.parameter([IDS, WIDTH], 0), "Ids": self.ids}, is_sparse=bool(b % 2))
        self.op("elementwise_add", {"X": self.pick(a), "Y": rows})

    def overwritten(self, a, b, c):
        """An op whose output is a variable that had a value before: another one, or its own input."""
        source = self.pick(a)
        target = source if c % 2 else self.pick(b)
        type, attrs = (("relu", {}), ("scale", {"scale": 0.5}), ("tanh", {}), ("softmax", {}), ("assign", {}))[b % 5]
        default_main_program().global_block().append_op(type, {"X": source}, {"Out": target}, attrs)

    def counted(self, a, b, c):
        """A counter that outlives the step, used before or after it moves on."""
        block = default_main_program().global_block()
        counter = block.create_var(name="counter", shape=[1], dtype="float32", persistable=True, stop_gradient=True)
        if b % 2:
            block.append_op("increment", {"X": counter}, {"Out": counter}, {"step": 0.125})
        more = apply("elementwise_add", {"X": counter, "Y": counter})
        self.op("elementwise_mul", {"X": self.pick(a), "Y": counter})
        if c % 2:
            block.append_op("relu", {"X": more}, {"Out": counter})

    def kept(self, a, b, c):
        """A temporary that is kept in the scope, as scripts do to look at it."""
        if self.pick(a) is not self.x:
            self.pick(a).persistable = True

    def stopped(self, a, b, c):
        if self.pick(a) is not self.x:
            self.pick(a).stop_gradient = True


STEPS = [method for name, method in vars(Builder).items()
         if callable(method) and not name.startswith("_") and name not in ("pick", "parameter", "op")]
OPTIMIZERS = (None, lambda: SGD(0.1), lambda: Momentum(0.1, 0.9, use_nesterov=True), lambda: Adam(0.01),
              lambda: Adagrad(0.05, regularization=L2Decay(0.01)), lambda: SGD(0.1, grad_clip=ClipByGlobalNorm(0.5)))
small = st.integers(0, 11)
steps = st.lists(st.tuples(st.sampled_from(STEPS), small, small, small), min_size=4, max_size=20)
batches = st.lists(st.sampled_from([1, 2, 5]), min_size=2, max_size=4)


def build(chain, optimizer):
    """The program of a chain of steps, with a loss and its backward and update ops."""
    builder = Builder()
    for step, *numbers in chain:
        step(builder, *numbers)
    apply("sum", {"X": [builder.made[-1], builder.pick(3)]}, out="last")
    weights = default_main_program().global_block().create_parameter(name="weights", shape=[WIDTH, 1])
    loss = apply("mean", {"X": apply("mul", {"X": "last", "Y": weights})}, out="loss")
    optimize = OPTIMIZERS[optimizer % len(OPTIMIZERS)]
    append_backward(loss) if optimize is None else optimize().minimize(loss)


def trained(main, startup, batches, fetches):
    """All fetches of all steps, then all that the scope holds, by name."""
    scope, exe, found = Scope(), Executor(), {}
    exe.run(startup, scope=scope)
    rng = np.random.default_rng(len(main.global_block().ops))
    for var in main.list_vars():
        if var.persistable and not scope.find_var(var.name) and -1 not in var.shape:
            scope.var(var.name).get_tensor().set(rng.normal(size=var.shape).astype("f") / 2)
    for number, (size, names) in enumerate(zip(batches, fetches)):
        feed = {"x": rng.normal(size=(size, WIDTH)).astype("f"), "ids": rng.integers(0, IDS, (size, 1))}
        for name, value in zip(names, exe.run(main, feed, names, scope=scope)):
            found[f"step {number}: {name}"] = value
    for name in scope.local_var_names():
        found[name] = np.array(scope.find_var(name).get_tensor())
    return found


def same(some, other, bits=True):
    """Whether all values are equal, to the bit or but for the sign of zeros."""
    assert some.keys() == other.keys()
    for name, value in some.items():
        if bits:
            assert value.tobytes() == other[name].tobytes() and value.shape == other[name].shape, name
        else:
            np.testing.assert_array_equal(value, other[name], err_msg=name)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(steps, small, batches, st.data())
def test_a_program_gives_the_same_bits_however_it_is_run(chain, optimizer, batches, draw):
    main, startup = Program(), Program()
    main.random_seed = startup.random_seed = 7
    with program_guard(main, startup), unique_name.guard():
        build(chain, optimizer)
    names = sorted({name for op in plan.live_ops(main, ["loss"]) for name in op.output_arg_names
                    if main.global_block().var(name).type == "lod_tensor"})
    lists = st.lists(st.sampled_from(names), max_size=3).map(lambda some: ["loss", *some])
    fetches = [draw.draw(lists) for _ in batches[:2]] * 2
    with pytest.MonkeyPatch.context() as patch:  # a fixture would last for all examples together
        apart = trained(main, startup, batches, fetches)
        patch.setattr(memory, "SHARE_FROM_BYTES", 0)
        same(trained(main, startup, batches, fetches), apart)
        patch.setattr(plan, "fuse", lambda ops, fetches: ops)
        plain = trained(main, startup, batches, fetches)
        same(plain, apart, bits=False)
        patch.setattr(executor, "make_plan", plan.InterpretedPlan)
        same(trained(main, startup, batches, fetches), plain)
