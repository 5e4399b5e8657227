"""Control flow: layers added inside a ``with`` block, or by a function, run under a condition or in a loop."""

from contextlib import contextmanager

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.layer_helper import LayerHelper
from fleet_mpi.program.engine.places import CPUPlace, CUDAPlace
from fleet_mpi.program.graph.program import default_main_program, reads_from_outside, writes_to_outside
from fleet_mpi.program.graph.structures import as_list
from fleet_mpi.program.graph.types import is_float
from fleet_mpi.program.graph.variable import Variable
from fleet_mpi.program.layers.comparison import equal, logical_and, logical_not
from fleet_mpi.program.layers.tensor import assign, fill_constant


@contextmanager
def nested_block():
    """Within it, layers write into a new block inside the current one."""
    program = default_main_program()
    body = program._create_block()
    try:
        yield body
    finally:
        program._rollback()


def _require_condition(condition, layer):
    if not isinstance(condition, Variable) or condition.dtype != "bool":
        got = f"{condition.dtype.value} variable" if isinstance(condition, Variable) else type(condition).__name__
        raise UsageError(f"{layer}: the condition must be a bool variable (less_than, equal, ...), got {got}")
    return condition


def _append_with_body(type, body, inputs, attrs, reads="Input"):
    """Add the op that runs a finished body, naming what the body takes from around it and leaves there."""
    outside = sorted(reads_from_outside(body).difference(*([one.name for one in given] for given in inputs.values())))
    for name in writes_to_outside(body):
        _let_gradients_flow(body, name)
    body.parent.append_op(type, {**inputs, reads: outside}, {"Out": writes_to_outside(body)},
                          {"sub_block": body.idx, **attrs})


def _let_gradients_flow(body, name):
    """A constant (fill_constant stops gradients) that a body replaces by what can be trained is none any more."""
    var = body._var_recursive(name)
    writers = [op for op in body.ops if name in op.output_arg_names and "sub_block" not in op.attrs]
    read = [body.find_var(one) for op in writers for one in op.input_arg_names if one != name]
    if not var.persistable and any(one is not None and not one.stop_gradient for one in read):
        var.stop_gradient = not is_float(var._dtype or "float32")


class ConditionalBlock:
    """What is added within ``block()`` runs only if the condition holds."""

    def __init__(self, inputs, is_scalar_condition=False, name=None):
        self.inputs = [_require_condition(one, "ConditionalBlock") if is_scalar_condition else one for one in inputs]
        self.is_scalar_condition = is_scalar_condition

    @contextmanager
    def block(self):
        """The body."""
        with nested_block() as body:
            yield
        _append_with_body("conditional_block", body, {"Cond": self.inputs},
                          {"is_scalar_condition": self.is_scalar_condition})


class Switch:
    """The first case whose condition holds runs, else the default::

        with layers.Switch() as switch:
            with switch.case(step < warmup):
                layers.assign(slow, rate)
            with switch.default():
                layers.assign(fast, rate)
    """

    def __init__(self, name=None):
        self.none_before = None
        self.is_open = False

    def case(self, condition):
        """The body of a case."""
        _require_condition(condition, "Switch.case")
        self._check_open()
        before, other = self.none_before, logical_not(condition)
        self.none_before = other if before is None else logical_and(before, other)
        mine = condition if before is None else logical_and(before, condition)
        return ConditionalBlock([mine], is_scalar_condition=True).block()

    def default(self):
        """The body for when no case holds."""
        self._check_open()
        if self.none_before is None:
            raise UsageError("Switch.default: add a case first")
        return ConditionalBlock([self.none_before], is_scalar_condition=True).block()

    def _check_open(self):
        if not self.is_open:
            raise UsageError("Switch: add cases within `with Switch() as switch:`")

    def __enter__(self):
        self.is_open = True
        return self

    def __exit__(self, *exc):
        self.is_open = False


class While:
    """What is added within ``block()`` runs again and again while ``cond``, which it must write, holds."""

    def __init__(self, cond, is_test=False, name=None):
        self.condition = _require_condition(cond, "While")
        if cond.shape not in ((), (1,)):
            raise UsageError(f"While: the condition must be one bool, got shape {cond.shape}")
        self.is_test = is_test

    @contextmanager
    def block(self):
        """The body."""
        with nested_block() as body:
            yield
        if self.condition.name not in writes_to_outside(body):
            raise UsageError(f"While: the body never writes its condition {self.condition.name!r}, so it would not "
                             f"end: compute it again in the body, with cond= or assign(..., output)")
        _append_with_body("while", body, {"Condition": [self.condition]}, {"is_test": self.is_test}, reads="X")


def while_loop(cond, body, loop_vars, is_test=False, name=None):
    """Repeat ``loop_vars = body(*loop_vars)`` while ``cond(*loop_vars)``; returns the variables, changed."""
    if not isinstance(loop_vars, (list, tuple)) or not loop_vars:
        raise UsageError("while_loop: expected loop_vars as a list of variables")
    condition = cond(*loop_vars)
    with While(condition, is_test, name).block():
        results = as_list(body(*loop_vars))
        if len(results) != len(loop_vars):
            raise UsageError(f"while_loop: the body returned {len(results)} values for {len(loop_vars)} loop_vars")
        for result, var in zip(results, loop_vars):
            if result is not var:
                assign(result, var)
        assign(cond(*loop_vars), condition)
    return list(loop_vars)


def cond(pred, true_fn=None, false_fn=None, name=None):
    """What ``true_fn()`` returns if ``pred`` holds, else what ``false_fn()`` does; both add layers.

    Shapes and element types may differ: a run gives those of the branch it took.
    """
    _require_condition(pred, "cond")
    outs = _branch(pred, true_fn, None)
    others = _branch(logical_not(pred), false_fn, outs)
    if (outs is None) != (others is None):
        raise UsageError("cond: one of true_fn and false_fn returns something, the other nothing")
    return outs


def _branch(pred, function, outs):
    """Run a function in a body under a condition; its results are put in ``outs``, made if None."""
    if function is None:
        return None
    with ConditionalBlock([pred], is_scalar_condition=True).block():
        results = function()
        if results is None:
            return None
        parent = default_main_program().current_block().parent
        given = [one if isinstance(one, Variable) else assign(one) for one in as_list(results)]
        made = as_list(outs) if outs is not None else [_sibling(parent, one) for one in given]
        if len(made) != len(given):
            raise UsageError(f"cond: true_fn returns {len(made)} values, false_fn {len(given)}")
        for one, out in zip(given, made):
            assign(one, out)
    return made if isinstance(results, (list, tuple)) else made[0]


def _sibling(block, var):
    helper = LayerHelper("cond")
    return block.create_var(name=f"{helper.name}.out", dtype=var.dtype, shape=var.shape)


def case(pred_fn_pairs, default=None, name=None):
    """What the function of the first condition that holds returns, else the default's (or the last one's)."""
    pairs = list(pred_fn_pairs)
    if not pairs:
        raise UsageError("case: expected at least one (condition, function)")
    if default is None:
        *pairs, (_, default) = pairs
    if not pairs:
        return default()
    (pred, function), rest = pairs[0], pairs[1:]
    return cond(pred, function, (lambda: case(rest, default)) if rest else default, name)


def switch_case(branch_index, branch_fns, default=None, name=None):
    """What the function numbered ``branch_index`` returns, else the default's (or the last one's)."""
    if isinstance(branch_fns, dict):
        branch_fns = sorted(branch_fns.items())
    pairs = [one if isinstance(one, (list, tuple)) else (i, one) for i, one in enumerate(branch_fns)]
    default = default if default is not None else pairs[-1][1]
    dtype = LayerHelper("switch_case").require(branch_index, "branch_index").dtype
    if is_float(branch_index._dtype):
        raise UsageError(f"switch_case: branch_index must be a whole number, got {dtype.value}")
    return case([(equal(branch_index, fill_constant([1], dtype, number)), function) for number, function in pairs],
                default, name)


class ParallelDo:
    """The body runs on all places, each with a part of the inputs; here, in one process, as it stands."""

    def __init__(self, places, use_nccl=False, name=None):
        self.places = places
        self.outputs = []

    @contextmanager
    def do(self):
        """The body."""
        yield

    def read_input(self, var):
        """The part of an input for this place: all of it."""
        return var

    def write_output(self, var):
        """Make a variable of the body a result."""
        self.outputs.append(var)

    def parent_block(self):
        """The block around the body."""
        return default_main_program().current_block()

    def __call__(self, *args, **kwargs):
        """The results: one variable, or all of them."""
        if not self.outputs:
            raise UsageError("ParallelDo: call write_output in the body first")
        return self.outputs[0] if len(self.outputs) == 1 else list(self.outputs)


def get_places(device_count=None, device_type=None):
    """The places to run on; in one process one, whatever ``device_count`` says."""
    return [CUDAPlace(0) if str(device_type).upper() in ("CUDA", "GPU") else CPUPlace()]
