"""``fluid.clip``: gradients kept within bounds."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.build.clip import (
    ErrorClipByValue,
    GradientClipBase,
    GradientClipByGlobalNorm,
    GradientClipByNorm,
    GradientClipByValue,
    append_gradient_clip_ops,
    set_gradient_clip,
)

__getattr__ = _missing_name("paddle.fluid.clip", globals())
