"""An embedding whose rows live on the parameter servers: ``forward`` pulls the rows of a batch, ``backward`` pushes.

Both are custom operators with a fake, so that ``torch.compile`` passes them by. A small tensor, the anchor, requires a
gradient in place of the rows: it makes autograd come back.
"""

from typing import Any

import torch
from torch._library.effects import EffectType

from fleet_mpi.door.job import Job
from fleet_mpi.door.tables import Table
from fleet_mpi.torch.arguments import array_of, the_job

_tables: list[Table] = []   # of this process: operators take numbers, not objects


class Embedding(torch.nn.Module):
    """Rows by id, kept and updated by the servers; a table of the array door.

    Every worker makes it, with the same arguments, before the first step. Its rows are no parameters of the module, and
    not in its ``state_dict``: ``job.save`` saves them. Gradients of rows are kept, merged by id, for the step that the
    optimizer, or ``job.step()``, ends next. Arguments are those of ``Job.table``: without ``height`` every int64 id has
    a row.
    """

    def __init__(self, name: str, dim: int, height: int | None = None, *, rule: str = "adagrad", lr: float = 0.05,
                 init: Any = ("uniform", -0.01, 0.01), dtype: torch.dtype = torch.float32, job: Job | None = None,
                 **settings: Any) -> None:
        super().__init__()
        self.table = the_job(job).table(name, dim, height, rule, lr, init=init,
                                        dtype=str(dtype).removeprefix("torch."), **settings)
        self.number = len(_tables)
        _tables.append(self.table)
        self.anchor = torch.zeros((), dtype=dtype, requires_grad=True)   # no Parameter: optimizers need not know

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Rows [*shape of the ids, dim], as the servers have them now. Blocks for the servers' answers."""
        rows: torch.Tensor = pull_rows(ids, self.anchor, self.number, self.table.dim)
        return rows


@torch.library.custom_op("fleet_mpi::pull_rows", mutates_args=())
def pull_rows(ids: torch.Tensor, anchor: torch.Tensor, table: int, dim: int) -> torch.Tensor:
    """The rows of a batch."""
    return torch.from_numpy(_tables[table].pull(array_of(ids, "fleet.Embedding: ids")))


@torch.library.custom_op("fleet_mpi::push_rows", mutates_args=())
def push_rows(ids: torch.Tensor, grads: torch.Tensor, table: int) -> torch.Tensor:
    """Keep the gradients of a batch's rows; returns the anchor's gradient, so that the call does not look useless."""
    _tables[table].push(array_of(ids, "fleet.Embedding: ids"), array_of(grads, "fleet.Embedding"))
    return grads.new_zeros(())


@pull_rows.register_fake
def _(ids: torch.Tensor, anchor: torch.Tensor, table: int, dim: int) -> torch.Tensor:
    return anchor.new_empty((*ids.shape, dim))


@push_rows.register_fake
def _(ids: torch.Tensor, grads: torch.Tensor, table: int) -> torch.Tensor:
    return grads.new_empty(())


def _remember(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    ids, _, ctx.table, _ = inputs
    ctx.save_for_backward(ids)


def _back(ctx: Any, grads: torch.Tensor) -> tuple[None, torch.Tensor, None, None]:
    return None, push_rows(ctx.saved_tensors[0], grads, ctx.table), None, None


# Equal calls are not one call: of two pushes of equal gradients a compiler would leave one.
push_rows.register_effect(EffectType.ORDERED)
pull_rows.register_autograd(_back, setup_context=_remember)
