"""``paddle.static.amp``: float16 where it is safe, with a scaled loss; bfloat16 is not built."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.build.amp import AutoMixedPrecisionLists, decorate
from fleet_mpi.program.build.amp import AutoMixedPrecisionLists as CustomOpLists

__getattr__ = _missing_name("paddle.static.amp", globals(), {"bf16": "fleet_mpi.paddle.static.amp.bf16"}, {
    name: "it is not built; decorate the optimizer, and the lists say what is computed in float16"
    for name in ("fp16_guard", "cast_model_to_fp16", "cast_parameters_to_fp16")})
