"""The update ops of the optimizers, one for each entry of ``update_rules.RULES``.

Slots are the original's: Param, Grad, LearningRate and the states, and each of them but the gradient and
the rate as an output too, normally the same variable: the update is done in place on the scope's array. A beta
power that is no output stays as it was: in 1.x ops of their own move them on.
A gradient may be dense or Rows. A setting that is a number may come as a variable instead of an attribute, in a
slot of its own (``beta1``: ``Beta1Tensor``), and is read at every step. Knows no arithmetic.
"""

from functools import partial

from fleet_mpi import arrays
from fleet_mpi.kernels.reference import update
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops.row_totals import RowTotals
from fleet_mpi.update_rules import BETA_POWERS, RULES, RowMerger

# Where the original's attribute has another name than the rule's argument.
ATTRIBUTE_OF = {"rmsprop": {"rho": "decay"}}
OUT_SLOTS = {"SquaredAccumulator": "SquaredAccumOut", "LinearAccumulator": "LinearAccumOut"}


def out_slot(slot):
    """The output slot of a state's input slot."""
    return OUT_SLOTS.get(slot, slot + "Out")


def tensor_slot(hyper):
    """The slot of a setting that is given as a variable."""
    return "".join(part.capitalize() for part in hyper.split("_")) + "Tensor"


def variable_settings(rule):
    """The settings of a rule that may be given as variables: its numbers."""
    return [name for name, default in rule.hypers.items() if isinstance(default, float)]


def attributes(rule, hypers):
    """A rule's settings under the op's attribute names."""
    names = ATTRIBUTE_OF.get(rule.name, {})
    return {names.get(name, name): list(value) if isinstance(value, tuple) else value
            for name, value in hypers.items()}


def settings_of(k, rule):
    """The rule's settings from an op's attributes, each of its default's type."""
    names = ATTRIBUTE_OF.get(rule.name, {})
    return rule.complete({name: k.attr(names.get(name, name), default) for name, default in rule.hypers.items()})


def enter(rule):
    """Enter the op of one rule."""
    slots = [state.slot for state in rule.states]

    class Update:
        """Param and states after one step."""

        def infer(k):
            """As they were; gradient and parameter must agree."""
            infer_update(k, slots)

        def run(k):
            """The rule on the arrays as they lie, bound once."""
            return bind_update(k, rule, slots)

    given = [tensor_slot(name) + "?" for name in variable_settings(rule)]
    op(rule.name, " ".join(["Param", "Grad", "LearningRate", *slots, "SkipUpdate?", *given]),
       " ".join(["ParamOut", *(out_slot(state.slot) + "?" * (state in BETA_POWERS) for state in rule.states)]),
       attrs=attributes(rule, rule.hypers), effect=True)(Update)


def infer_update(k, slots):
    """Outputs are as the inputs; a gradient of another shape is an error."""
    param, grad = k.shape("Param"), k.shape("Grad")
    if len(param) != len(grad) or any(a != b and -1 not in (a, b) for a, b in zip(param, grad)):
        k.fail(f"expected a gradient of the parameter's shape {list(param)}, got {list(grad)}")
    for slot in ["Param", *slots]:
        k.set(out_slot(slot), k.shape(slot), k.dtype(slot), lod=())


def bind_update(k, rule, slots):
    """The call for one step: copies (where an output is another variable than its input), then the rule."""
    held = [("Param", k["ParamOut"]),
            *((slot, k[out_slot(slot)] if k.has(out_slot(slot)) else k.keep((1,), k.dtype(slot)))
              for slot in slots)]
    copies = [(array, k[slot]) for slot, array in held if k.name(slot) != k.name(out_slot(slot))]
    run = bound_rule(k, rule, [array for _, array in held])
    if k.has("SkipUpdate"):
        run = bound_unless(k, rule, [array for _, array in held], run)
    if copies:
        run = after_copies(k.xp, copies, run)
    return run


def bound_unless(k, rule, held, run):
    """The update that is skipped where the flag is true; on a device nobody waits for the flag.

    Row gradients, and settings that are variables, are waited for anyway: then the flag is read too.
    """
    flag, grad, (param, *states) = k["SkipUpdate"], k["Grad"], held
    waits = isinstance(grad, arrays.Rows) or any(k.has(tensor_slot(name)) for name in variable_settings(rule))
    if arrays.is_host(flag) or waits:
        return unless(flag, run)
    return rule.bind(param, grad, k["LearningRate"], states, flag, **settings_of(k, rule))


def bound_rule(k, rule, held):
    """The rule over the arrays: as lines for a dense gradient, as tables with merged rows for Rows."""
    grad, rate, hypers = k["Grad"], k["LearningRate"], settings_of(k, rule)
    given = {name: k[tensor_slot(name)] for name in variable_settings(rule) if k.has(tensor_slot(name))}
    if given:
        return with_given_settings(rule, held, grad, rate, hypers, given)
    if isinstance(grad, arrays.Rows):
        (param, *states), apply = held, partial(rule.run, **hypers)
        merge = RowMerger() if arrays.is_host(param) else RowTotals()
        return lambda: apply(param, merge(grad), rate, *states)
    param, *states = [array.reshape(-1) for array in held]
    grad = grad.reshape(-1)
    if not arrays.is_host(param):
        return rule.bind(param, grad, rate, states, **hypers)
    if rule.name == "sgd":
        # Small models are many short sgd ops: straight to the kernel.
        return partial(update.sgd.pick(param), param, grad, rate)
    return partial(rule.run, param, grad, rate, *states, **hypers)


def with_given_settings(rule, held, grad, rate, hypers, given):
    """The rule with some settings ([1] each) as they stand at the step; on a device this waits for them."""
    param, *states = held

    def run():
        now = {name: float(arrays.to_host(array).reshape(-1)[0]) for name, array in given.items()}
        rule.run(param, grad, rate, *states, **{**hypers, **now})
    return run


def after_copies(xp, copies, run):
    """Copy inputs to outputs, then run."""
    def run_on_copies():
        for target, source in copies:
            xp.copyto(target, source)
        run()
    return run_on_copies


def unless(flag, run):
    """Run only where the flag ([1], bool) is false; on a device this waits for it."""
    def run_or_skip():
        if not arrays.to_host(flag)[0]:
            run()
    return run_or_skip


for _rule in RULES.values():
    enter(_rule)
