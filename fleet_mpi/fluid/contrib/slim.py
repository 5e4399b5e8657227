"""``fluid.contrib.slim`` and ``quantize``: smaller models by quantisation, pruning and distillation, known by name
only."""

from fleet_mpi.errors import missing_name as _missing_name

REFUSED = dict.fromkeys(
    ("Compressor", "QuantizeTranspiler", "QuantizationTransformPass", "QuantizationFreezePass", "ConvertToInt8Pass",
     "PostTrainingQuantization", "WeightQuantization", "ImperativeQuantAware"),
    "quantisation is not built; models are trained and saved in float32")
__path__ = []  # those below it are found elsewhere: see standing_in.ELSEWHERE

__getattr__ = _missing_name("paddle.fluid.contrib.slim", globals(), refused=REFUSED)
