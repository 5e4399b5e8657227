"""An optimizer of PyTorch whose rule runs on the parameter servers.

Parameters become views of the array that answers go to; a step is ``push_pull`` of ``Job.parameter_server``.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from fleet_mpi.door.job import Job
from fleet_mpi.errors import UsageError
from fleet_mpi.torch.arguments import array_of, the_job
from fleet_mpi.update_rules import RULES

WHAT = "fleet.server_optimizer"
OF_GROUPS = ("params", "lr", "param_names", "initial_lr")   # no settings of the rule; the last is a scheduler's


class ServerOptimizer(torch.optim.Optimizer):
    """Collective, workers: an optimizer for these parameters, which begin with worker 0's values on all workers.

    Once per job, before the first step. Schedulers of ``torch.optim.lr_scheduler`` work on it.

    Args:
        params: as every optimizer of PyTorch takes them: tensors, (name, tensor) pairs, or groups of either, each with
            its own ``lr`` or settings of the rule. Those that require no gradient stay as they are.
        settings: mode, split, and settings of the rule and the mode, as ``Job.parameter_server`` takes them.
    """

    def __init__(self, params: Iterable[Any], rule: str = "sgd", lr: float = 0.01, *, job: Job | None = None,
                 **settings: Any) -> None:
        super().__init__(params, {"lr": lr})
        job = the_job(job)
        self.rule, numbers = rule, iter(range(1 << 62))
        self.names = [group.get("param_names") or [str(next(numbers)) for _ in group["params"]]
                      for group in self.param_groups]
        self.params = {name: one for names, group in zip(self.names, self.param_groups)
                       for name, one in zip(names, group["params"]) if one.requires_grad}
        self.settings = [{name: value for name, value in group.items() if name not in OF_GROUPS}
                         for group in self.param_groups]
        self.each = {one: said for names, said in zip(self.names, self.settings) for one in names if one in self.params}
        self.server = job.parameter_server(
            {name: array_of(one, f"{WHAT}: {name!r}") for name, one in self.params.items()}, rule, self._rates(),
            rates={name: str(number) for number, names in enumerate(self.names) for name in names if name in self.each},
            each=self.each, **settings)
        job.broadcast(self.server.params)   # gradients of the first step are made before anything comes from a server
        for name, one in self.params.items():
            one.data = torch.from_numpy(self.server.params[name])
        self.views = {name: torch.from_numpy(one) for name, one in self.server.grads.items()}
        self.addresses = {name: one.data_ptr() for name, one in self.params.items()}

    def _rates(self) -> dict[str, float]:
        return {str(number): float(group["lr"]) for number, group in enumerate(self.param_groups)}

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Refused once the optimizer is made."""
        if hasattr(self, "server"):
            raise UsageError(f"{WHAT}: the job has its parameters: give all groups when the optimizer is made")
        super().add_param_group(param_group)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """End a step: send the gradients, and let the parameters be what the servers answer.

        Every worker, once a step. Blocks as the mode says. No gradient counts as zeros.
        """
        with torch.enable_grad():
            loss = None if closure is None else closure()
        for name, one in self.params.items():
            if one.data_ptr() != self.addresses[name]:
                raise UsageError(f"{WHAT}: {name!r} has other memory now (model.to, p.data=): make the optimizer last")
            if one.grad is None:
                self.views[name].zero_()
            elif one.grad is not self.views[name]:
                self.views[name].copy_(one.grad)
                one.grad = self.views[name]
        self._take_over_groups()
        self.server.push_pull()
        return loss

    def _take_over_groups(self) -> None:
        """Learning rates may change at any time, settings of the rule may not: the servers have them."""
        if self._rates() != self.server.lr:
            self.server.lr = self._rates()
        for group, name, value in ((group, *one) for group, said in zip(self.param_groups, self.settings)
                                   for one in said.items()):
            if group[name] != value:
                raise UsageError(f"{WHAT}: {name!r} of a group was changed from {value!r} to {group[name]!r}: only "
                                 f"learning rates can change; give a scheduler cycle_momentum=False")

    def state_dict(self) -> dict[str, Any]:
        """The usual, with whole states for any number of servers. Any worker, between steps; blocks for the servers."""
        found = self.server.fetch([kept for _, _, kept in self._states()])
        packed: dict[str, Any] = {**super().state_dict(), "state": {}}
        for number, state, kept in self._states():
            packed["state"].setdefault(number, {})[state] = torch.from_numpy(found[kept].copy())
        return packed

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Collective, workers: let the servers have worker 0's states, and its parameters as the model has them now.

        So load the model first. Blocks until all workers have what the servers keep.
        """
        try:
            states = {kept: array_of(state_dict["state"][number][state], kept)
                      for number, state, kept in self._states()}
        except KeyError as missing:
            raise UsageError(f"{WHAT}: load_state_dict: there is no {missing}: these are states of another rule, or of "
                             f"other parameters") from None
        super().load_state_dict({"state": {}, "param_groups": state_dict["param_groups"]})
        self.server.store({**{name: one.copy() for name, one in self.server.params.items()}, **states})

    def _states(self) -> Iterator[tuple[int, str, str]]:
        """(number of the parameter, state of its rule, the name it is kept by) of all states."""
        for number, name in enumerate(self.params):
            for state in RULES[self.each[name].get("rule", self.rule)].states:
                yield number, state.name, f"{name}_{state.name}_0"
