"""A scope bound to an equal worker's connection: its gradients are views of the flat array that is summed."""

from collections.abc import Callable
from typing import Any

from fleet_mpi import arrays
from fleet_mpi.collective.group import Group
from fleet_mpi.connections import equal
from fleet_mpi.connections.equal import EqualConnection, EqualTerms
from fleet_mpi.program.engine.frame import Clock
from fleet_mpi.program.engine.scope import Scope
from fleet_mpi.ranks import cluster
from fleet_mpi.transpile.collective import CollectivePlan

SESSION = "@COLLECTIVE@"  # the variable of a scope that holds its sessions


def terms_of(plan: CollectivePlan) -> EqualTerms:
    """What a connection needs of a plan."""
    return EqualTerms(plan.workers, plan.worker, plan.gradients, plan.buckets, plan.options, plan.fingerprint())


class Session:
    """One worker's part in one plan, in one scope; ``turns`` knows which of the scope's sessions runs."""

    def __init__(self, plan: CollectivePlan, scope: Scope, connection: EqualConnection, turns: "_Turns"):
        self.plan, self.scope, self.connection, self.turns = plan, scope, connection, turns
        self.group, self.bucket_of = connection.group, connection.bucket_of
        self.ready, self.wait = connection.ready, connection.wait
        self.gather, self.gather_rows = connection.gather, connection.gather_rows

    @property
    def steps(self) -> int:
        """How many steps it has behind it."""
        return self.connection.steps

    @property
    def flat(self) -> Any:
        """Where the gradients lie; None before ``install``."""
        return self.connection.flat

    @property
    def reducers(self) -> list:
        """What sums them, one for each lane."""
        return self.connection.reducers

    @property
    def xp(self) -> Any:
        """The module that computes with them."""
        return self.connection.xp

    def take_turn(self) -> None:
        """Before a run: be the session that the scope runs with now."""
        self.turns.current = self

    def begin_step(self) -> Callable[[], None] | None:
        """Before a step; returns what is to be called before the host waits for the device."""
        self.turns.current = self
        return self.connection.begin_step()

    def install(self, xp: Any) -> None:
        """Before the first step: let the scope's gradients lie in the buckets, where ``xp`` computes."""
        if self.flat is None:
            self.move_to(xp)

    def move_to(self, xp: Any) -> None:
        """Collective, unless they do already: let the gradients lie where ``xp`` computes, and be summed from there."""
        if self.connection.move_to(xp):
            for name, view in self.flat.views.items():
                self.scope.var(name).put(view)

    def sum_now(self, array: Any) -> None:
        """Replace a contiguous array by the sum over all workers, at once: for what is in no bucket."""
        self.move_to(arrays.module_of(array))
        self.connection.sum_now(array)

    def broadcast(self, names: list[str]) -> None:
        """Take worker 0's values of these variables."""
        self.connection.broadcast([self.scope.array(name) for name in names])


class _Turns:
    """The sessions of a scope, one for each plan: programs may take turns."""

    def __init__(self):
        self.by_plan, self.current = {}, None


def session_of(scope: Scope) -> Session | None:
    """The session that a scope's program runs with now, or None."""
    holder = scope.find_var(SESSION)
    return None if holder is None or holder.value is None else holder.value.current


def connect(plan: CollectivePlan, scope: Scope, group: Group | None = None) -> Session:
    """The session of a scope for a plan, made (in ``group``, if one is given) if there is none."""
    holder = scope.find_var(SESSION) or scope.var(SESSION)
    if holder.value is None:
        holder.value = _Turns()
    known = holder.value.by_plan.get(id(plan))
    if known is None:
        terms = terms_of(plan)
        connection = EqualConnection(terms, _join(terms) if group is None else group)
        known = holder.value.by_plan[id(plan)] = Session(plan, holder.scope, connection, holder.value)
    known.take_turn()
    return known


def _join(terms):
    group = equal.join(terms)
    if group.size > 1:
        Clock.process_worker = cluster.current().index
    return group
