"""Ops that run a nested block: if a condition holds, or as long as it does.

A body works on the variables of the blocks around it; what it does not write stays as it was.
"""

from fleet_mpi import arrays
from fleet_mpi.errors import ProgramError
from fleet_mpi.program.build.nested_gradients import append_nested_grad
from fleet_mpi.program.graph.registry import Meta, op
from fleet_mpi.program.graph.types import VarType


def holds(condition):
    """Whether all elements of a condition are true."""
    return bool(arrays.to_host(condition).all())


# What an op with a body leaves for its gradient.
LEFT_FOR_GRADIENT = Meta((), "float32", kind="raw")


def nothing_to_infer(k):
    """What a body writes is inferred from its ops."""


def name_for_gradient(op, slot):
    """Give an op with a body the output that its gradient reads: so it runs whenever the gradient does."""
    if not op.output(slot):
        name = f"{op.block.idx}.{op.attrs['sub_block']}@{slot.upper()}"
        op.block.create_var(name=name, type=VarType.STEP_SCOPES, dtype=None, stop_gradient=True)
        op.outputs[slot] = [name]
        op.block.program.touch()


@op("conditional_block", "Cond* Input*", "Out* Scope?", attrs={"is_scalar_condition": False})
class ConditionalBlock:
    """The body, if the condition holds; without ``is_scalar_condition``, if the conditions are not empty."""

    def infer(k):
        """What a body writes is inferred from its ops."""
        k.set("Scope", (), "float32", (), kind="raw")

    def run(k):
        k.put("Scope", [], meta=LEFT_FOR_GRADIENT)
        body, conditions = k.bind_block(k.attr("sub_block")), k.all("Cond")
        if not k.attr("is_scalar_condition"):
            return body if all(condition.size for condition in conditions) else lambda: None
        condition, = conditions

        def run():
            if holds(condition):
                body()
        return run

    def make_grad(walk, op, grads):
        """Through the body, where it ran; around it, where it did not."""
        name_for_gradient(op, "Scope")
        append_nested_grad(walk, op, grads, reads=["Cond", "Scope"], carry_all=False)


@op("while", "X* Condition", "Out* StepScopes?", dynamic=True,
    attrs={"is_test": False, "kept": [], "kept_shapes": [], "carried": []})
class While:
    """The body again and again, as long as the condition, which it must write, holds.

    ``StepScopes`` holds what the gradient needs of every turn.
    """

    infer = nothing_to_infer

    def run(k):
        """Ask before every turn; the body may have put another array in the condition's place."""
        from fleet_mpi.program.ops.nested_gradients import Kept
        body = k.bind_block(k.attr("sub_block"))
        arrays_inside = [name for name, var in k.program.blocks[k.attr("sub_block")].vars.items()
                         if var.type == VarType.LOD_TENSOR_ARRAY]
        is_kept = k.has("StepScopes") and not k.attr("is_test")

        def run():
            tape, turns = [], k.clock.turns()
            while holds(k["Condition"]):
                next(turns)
                kept = Kept(k.frame, k.attr("carried")) if is_kept else None
                body()
                if is_kept:
                    kept.take(k.frame, k.attr("kept"), k.attr("kept_shapes"))
                    tape.append(kept)
                for name in arrays_inside:  # an array made by the body is new at every turn
                    k.frame.values.pop(name, None)
            turns.close()
            k.put("StepScopes", tape, meta=LEFT_FOR_GRADIENT)
        return run

    def make_grad(walk, op, grads):
        """Through every turn; from now on the loop keeps what that needs."""
        name_for_gradient(op, "StepScopes")
        made = append_nested_grad(walk, op, grads, reads=["StepScopes"], carry_all=True)
        if made is not None:
            values, shapes = made.kept()
            op.attrs["kept"] = sorted({*op.attrs["kept"], *values})
            op.attrs["kept_shapes"] = sorted({*op.attrs["kept_shapes"], *shapes})
            op.attrs["carried"] = list(made.given)


@op("assert", "Cond Data*", "", attrs={"summarize": -1}, effect=True)
class Assert:
    """An error with the data, unless the condition holds."""

    infer = nothing_to_infer

    def run(k):
        condition, data = k["Cond"], k.all("Data")
        count = k.attr("summarize")

        def run():
            if not holds(condition):
                shown = [f"{k.name('Data', i)} = {arrays.to_host(one).reshape(-1)[:count if count > 0 else None]}"
                         for i, one in enumerate(data)]
                raise ProgramError(f"{k.op}: the condition {k.name('Cond')!r} does not hold"
                                   + (f" ({', '.join(shown)})" if shown else ""))
        return run
