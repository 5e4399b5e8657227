"""Inference as the original's C++ half offers it to scripts: a config, tensors without a program, a predictor.

A predictor has a scope of its own, so that it changes nothing of what the script trains.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import numpy as np

from fleet_mpi.checkpoint.models.inference_model import load_inference_model
from fleet_mpi.errors import UsageError
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.engine.places import CPUPlace, CUDAPlace
from fleet_mpi.program.engine.scope import Scope, Tensor, scope_guard

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import ArrayLike


class PaddleDType(enum.IntEnum):
    """The types of elements, as the original numbers them."""

    FLOAT32 = 0
    INT64 = 1
    INT32 = 2


_DTYPES = {PaddleDType.FLOAT32: "float32", PaddleDType.INT64: "int64", PaddleDType.INT32: "int32"}


class PaddleBuf:
    """Values in a row."""

    def __init__(self, data: ArrayLike = ()) -> None:
        self._array = np.asarray(data)

    def float_data(self) -> list[float]:
        """The values as a list of float32."""
        return self._array.reshape(-1).astype("float32").tolist()

    def int64_data(self) -> list[int]:
        """The values as a list of integers."""
        return self._array.reshape(-1).astype("int64").tolist()

    int32_data = int64_data

    def length(self) -> int:
        """The size in bytes."""
        return self._array.nbytes

    def tolist(self) -> list[Any]:
        """The values as a list."""
        return self._array.reshape(-1).tolist()


class PaddleTensor:
    """Values with a shape, a type and offsets of sequences, to be set one by one or made from an array."""

    def __init__(self, data: ArrayLike | None = None, name: str = "") -> None:
        array = np.asarray(data) if data is not None else np.empty(0, "float32")
        self.name, self.shape, self.data = name, list(array.shape), PaddleBuf(array)
        self.lod: list[list[int]] = []
        self.dtype = next((kind for kind, name in _DTYPES.items() if name == array.dtype), PaddleDType.FLOAT32)

    def as_ndarray(self) -> np.ndarray:
        """The values as an array of the shape and type that are set."""
        return np.array(self.data._array, _DTYPES[PaddleDType(self.dtype)]).reshape([int(size) for size in self.shape])


class NativeConfig:
    """Which model (``model_dir``, or ``prog_file`` and ``param_file``), and where it runs."""

    def __init__(self) -> None:
        self.model_dir, self.prog_file, self.param_file = "", "", ""
        self.use_gpu, self.device, self.fraction_of_gpu_memory, self.specify_input_name = False, 0, 0.0, False

    def predictor(self) -> PaddlePredictor:
        """Load the model."""
        return PaddlePredictor(self)


class PaddlePredictor:
    """A loaded model; ``run`` takes a tensor per variable to feed, in their order, or by name where tensors have
    one."""

    def __init__(self, config: NativeConfig) -> None:
        if not config.model_dir:
            raise UsageError("NativeConfig: set model_dir to the folder that save_inference_model wrote")
        self._scope = Scope()
        self._executor = Executor(CUDAPlace(config.device) if config.use_gpu else CPUPlace())
        with scope_guard(self._scope):
            self._program, self._feeds, self._fetches = load_inference_model(
                config.model_dir, self._executor, config.prog_file or None, config.param_file or None)

    def run(self, inputs: list[PaddleTensor], batch_size: int = -1) -> list[PaddleTensor]:
        """A PaddleTensor per variable to fetch."""
        if len(inputs) != len(self._feeds):
            raise UsageError(f"predictor: expected {len(self._feeds)} tensors, one for each of {self._feeds}, got "
                             f"{len(inputs)}")
        named = all(one.name in self._feeds for one in inputs)
        feed = {one.name if named else name: _with_lod(one) for name, one in zip(self._feeds, inputs)}
        with scope_guard(self._scope):
            results = self._executor.run(self._program, feed=feed, fetch_list=self._fetches, return_numpy=False)
        return [_from(tensor, var.name) for tensor, var in zip(results, self._fetches)]


def create_paddle_predictor(config: NativeConfig) -> PaddlePredictor:
    """A predictor for a NativeConfig."""
    return config.predictor()


def _with_lod(given: PaddleTensor) -> Tensor:
    tensor = Tensor(given.as_ndarray())
    tensor.set_lod(given.lod)
    return tensor


def _from(tensor: Tensor, name: str) -> PaddleTensor:
    made = PaddleTensor(tensor.numpy(), name)
    made.lod = tensor.lod()
    return made
