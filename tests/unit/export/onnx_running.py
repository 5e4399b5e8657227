"""Running ONNX models for tests: by onnxruntime where it is installed, and by the evaluator that comes with onnx."""

import importlib.util

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

HAS_RUNTIME = importlib.util.find_spec("onnxruntime") is not None


def by_reference(model, feed):
    """The outputs by onnx's own evaluator."""
    with np.errstate(all="ignore"):
        return ReferenceEvaluator(model).run(None, feed)


def by_runtime(model, feed):
    """The outputs by onnxruntime, on one thread."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feed)


RUNNERS = (by_runtime, by_reference) if HAS_RUNTIME else (by_reference,)


def checked(model):
    """The model, its shapes worked out and held against each other by onnx."""
    onnx.checker.check_model(model, full_check=True)
    return model
