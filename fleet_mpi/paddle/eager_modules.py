"""Modules of 2.x that serve eager mode or deployment, known by name only: importing works, use is refused.

One module stands for all of them (see ``standing_in.ELSEWHERE``).
"""

import sys as _sys

from fleet_mpi.errors import missing_name as _missing_name

__path__ = []  # those below it are found elsewhere: see standing_in.ELSEWHERE
_module = callbacks = model = progressbar = _sys.modules[__name__]

_EAGER = "there is no eager mode; build a static program and run it with an Executor"
_REFUSED = {
    **dict.fromkeys(("auto_cast", "GradScaler"), f"{_EAGER}, with paddle.static.amp.decorate(optimizer) for float16"),
    **dict.fromkeys(("backward", "grad", "PyLayer", "PyLayerContext", "Model", "summary", "Callback", "EarlyStopping",
                     "LRScheduler", "ModelCheckpoint", "ProgBarLogger", "ReduceLROnPlateau", "VisualDL"), _EAGER),
    **dict.fromkeys(("Config", "create_predictor", "Predictor", "PredictorPool", "DataType", "PlaceType",
                     "PrecisionType"),
                    "take paddle.static.load_inference_model and an Executor, or fluid.core.create_paddle_predictor"),
    **dict.fromkeys(("export", "help", "list", "load"),
                    "models are neither exported nor fetched from the network; paddle.static.save_inference_model "
                    "saves them")}

__getattr__ = _missing_name("paddle.eager_modules", globals(), refused=_REFUSED)
