"""PyTorch's door: ``import fleet_mpi.torch as fleet``, then ``fleet.join()``; on stock wheels, over any MPI.

    parallel          gradients of equal workers, averaged while the backward pass runs
    process_group     the workers as a process group, for stock DistributedDataParallel
    server_optimizer  an optimizer whose rule runs on the parameter servers
    embedding         an embedding whose rows live on the parameter servers
    arguments         what callers give, checked

Everything takes ``job=None``: the one that this process has joined. Stands on ``door``, and is the only part that
imports torch (extra ``torch``). Tensors lie on the host.
Workers of a DataLoader must not be forked after MPI has started: give it ``multiprocessing_context="spawn"``.
"""

from fleet_mpi.errors import EnvironmentProblem

try:
    import torch as _torch  # noqa: F401
except ImportError as problem:
    raise EnvironmentProblem(f"fleet_mpi.torch needs PyTorch, any build: pip install torch ({problem})") from problem

from fleet_mpi.door.joining import join
from fleet_mpi.torch.embedding import Embedding
from fleet_mpi.torch.parallel import no_sync, parallel
from fleet_mpi.torch.process_group import ProcessGroup as process_group
from fleet_mpi.torch.server_optimizer import ServerOptimizer as server_optimizer

__all__ = ["Embedding", "join", "no_sync", "parallel", "process_group", "server_optimizer"]
