"""Ops that run a nested block: if a condition holds, or as long as it does.

A body works on the variables of the blocks around it; what it does not write stays as it was.
"""

from fleet_mpi import arrays
from fleet_mpi.errors import ProgramError
from fleet_mpi.program.registry import op


def holds(condition):
    """Whether all elements of a condition are true."""
    return bool(arrays.to_host(condition).all())


def nothing_to_infer(k):
    """What a body writes is inferred from its ops."""


@op("conditional_block", "Cond* Input*", "Out* Scope?", attrs={"is_scalar_condition": False})
class ConditionalBlock:
    """The body, if the condition holds; without ``is_scalar_condition``, if the conditions are not empty."""

    infer = nothing_to_infer

    def run(k):
        """Ask, then run."""
        body, conditions = k.bind_block(k.attr("sub_block")), k.all("Cond")
        if not k.attr("is_scalar_condition"):
            return body if all(condition.size for condition in conditions) else lambda: None
        condition, = conditions

        def run():
            if holds(condition):
                body()
        return run


@op("while", "X* Condition", "Out* StepScopes?", attrs={"is_test": False}, dynamic=True)
class While:
    """The body again and again, as long as the condition, which it must write, holds."""

    infer = nothing_to_infer

    def run(k):
        """Ask before every turn; the body may have put another array in the condition's place."""
        body = k.bind_block(k.attr("sub_block"))

        def run():
            while holds(k["Condition"]):
                body()
        return run


@op("assert", "Cond Data*", "", attrs={"summarize": -1}, effect=True)
class Assert:
    """An error with the data, unless the condition holds."""

    infer = nothing_to_infer

    def run(k):
        """Ask."""
        condition, data = k["Cond"], k.all("Data")
        count = k.attr("summarize")

        def run():
            if not holds(condition):
                shown = [f"{k.name('Data', i)} = {arrays.to_host(one).reshape(-1)[:count if count > 0 else None]}"
                         for i, one in enumerate(data)]
                raise ProgramError(f"{k.op}: the condition {k.name('Cond')!r} does not hold"
                                   + (f" ({', '.join(shown)})" if shown else ""))
        return run
