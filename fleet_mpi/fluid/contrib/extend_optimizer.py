"""``fluid.contrib.extend_optimizer``: optimizers with weight decay apart from the gradient."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.optimizers.decoupled_decay import extend_with_decoupled_weight_decay

__getattr__ = _missing_name("paddle.fluid.contrib.extend_optimizer", globals())
