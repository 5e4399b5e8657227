"""``fluid.dygraph``: eager mode, which is not built: every name can be imported, its use says so.

One module stands for all below it (``dygraph.nn``, ``dygraph.parallel``, ``dygraph.base``, ...).
"""

import contextlib as _contextlib
import sys as _sys

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.parallel_env import ParallelEnv
from fleet_mpi.program.layers.layer import Layer
from fleet_mpi.program.layers.layer_containers import LayerList, Sequential

__path__ = []  # those below it are found elsewhere: see standing_in.ELSEWHERE
Env = ParallelEnv
backward_strategy = base = checkpoint = container = io = jit = layers = learning_rate_scheduler = nn = parallel = \
    tracer = varbase_patch_methods = _sys.modules[__name__]


class ParallelStrategy:
    """Who trains beside this process: plain values for scripts to set and read."""

    def __init__(self):
        self.nranks, self.local_rank, self.trainer_endpoints, self.current_endpoint = 1, 0, [], ""


class no_grad(_contextlib.ContextDecorator):
    """No effect, as in the original's static programs: ``with no_grad():``, ``@no_grad`` and ``@no_grad()``."""

    def __new__(cls, func=None):
        """The function itself where it decorates without parentheses."""
        return super().__new__(cls) if func is None else func

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False


def enabled():
    """False: programs are static."""
    return False


_EAGER = ("there is no eager mode; build a static program (fluid.layers, or the classes of paddle.nn) and run it with "
          "an Executor")
_FUNCTIONS = ("guard", "to_variable", "enable_dygraph", "disable_dygraph", "grad", "save_dygraph", "load_dygraph",
              "prepare_context", "save", "load", "save_persistables", "load_persistables", "set_verbosity",
              "set_code_level", "monkey_patch_varbase", "amp_guard", "start_gperf_profiler", "stop_gperf_profiler")
_CLASSES = ("BackwardStrategy", "DataParallel", "TracedLayer", "TranslatedLayer", "ProgramTranslator", "SaveLoadConfig",
            "AmpScaler", "LearningRateDecay", "Tracer", "Conv2D", "Conv3D", "Pool2D", "Linear", "FC", "BatchNorm",
            "Dropout", "Embedding", "GRUUnit",
            "InstanceNorm", "LayerNorm", "NCE", "PRelu", "BilinearTensorProduct", "Conv2DTranspose", "Conv3DTranspose",
            "GroupNorm", "SpectralNorm", "TreeConv", "Flatten", "ParameterList", "NoamDecay", "PiecewiseDecay",
            "NaturalExpDecay", "ExponentialDecay", "InverseTimeDecay", "PolynomialDecay", "CosineDecay",
            "LinearLrWarmup", "ReduceLROnPlateau", "StepDecay", "MultiStepDecay", "LambdaDecay", "GRUCell", "LSTMCell",
            "HSigmoid", "RowConv", "UpSample")  # the last three: of 1.8's paddle.nn

# Decorators: what they decorate may be defined, and is refused when it is called.
_DECORATORS = {"declarative": "to_static", "dygraph_to_static_func": "to_static", "not_to_static": "not_to_static"}

__getattr__ = _missing_name("paddle.fluid.dygraph", globals(),
                            {name: f"fleet_mpi.paddle.jit:{ours}" for name, ours in _DECORATORS.items()},
                            dict.fromkeys(_FUNCTIONS + _CLASSES, _EAGER))
