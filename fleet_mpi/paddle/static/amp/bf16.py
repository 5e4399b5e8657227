"""``paddle.static.amp.bf16``: training in bfloat16, known by name only."""

from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.static.amp.bf16", globals(), refused=dict.fromkeys(
    ("decorate_bf16", "AutoMixedPrecisionListsBF16", "bf16_guard", "cast_model_to_bf16", "cast_parameters_to_bf16",
     "convert_float_to_uint16", "rewrite_program_bf16"),
    "bfloat16 is not built (numpy has no such type); paddle.static.amp.decorate trains in float16 where it is safe"))
