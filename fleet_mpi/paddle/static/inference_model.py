"""``paddle.static.save_inference_model`` and its counterpart: two files that begin with one path."""

import os

from fleet_mpi.checkpoint.models import inference_model as _inference_model
from fleet_mpi.checkpoint import saving as _saving
from fleet_mpi.errors import missing_name as _missing_name


def save_inference_model(path_prefix, feed_vars, fetch_vars, executor, program=None, clip_extra=False):
    """Save ``<path>.pdmodel`` and ``<path>.pdiparams``."""
    folder, name = os.path.split(path_prefix)
    feeds = feed_vars if isinstance(feed_vars, (list, tuple)) else [feed_vars]
    _saving.save_inference_model(folder or ".", [var.name for var in feeds], fetch_vars, executor, program,
                                 name + ".pdmodel", name + ".pdiparams")


def load_inference_model(path_prefix, executor):
    """[program, names to feed, variables to fetch] of a saved model."""
    folder, name = os.path.split(path_prefix)
    return _inference_model.load_inference_model(folder or ".", executor, name + ".pdmodel", name + ".pdiparams")


__getattr__ = _missing_name("paddle.static.inference_model", globals())
