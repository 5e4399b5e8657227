"""Lets ``import paddle`` and all below it mean the modules of this package.

``paddle.fluid.x`` is ``fleet_mpi.fluid.x``, any other ``paddle.x`` is ``fleet_mpi.paddle.x``: the very same
module objects, so that classes are equal whichever name they were imported by.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import pkgutil
import re
import sys

from fleet_mpi import notices
from fleet_mpi.ranks import cluster, devices
from fleet_mpi.errors import UnknownName, nearest
from fleet_mpi.fluid import refused_modules
from fleet_mpi.paddle import function_modules
from fleet_mpi.names import paddle as on_path


def stand_in():
    """From now on, in this process, ``paddle`` is ours; one that is installed is shadowed, in one log line."""
    if not _stands_in():
        if _installed() and notices.speaks_for_job():
            notices.log().warning("a paddle is installed in this environment; fleet_mpi's names are used instead of it")
        sys.meta_path.insert(0, Finder())


def by_path(folder):
    """``paddle``, found in this folder of ``sys.path`` by plain Python: ours from now on, in one line of the job."""
    if not _stands_in():
        if notices.speaks_for_job():
            notices.log().info("paddle is fleet_mpi here (found in %s; python -m fleet_mpi names)", folder)
        cluster.guard_if_launched()
        devices.export_own()
        sys.meta_path.insert(0, Finder())
    return importlib.import_module("fleet_mpi.paddle")


def _stands_in():
    return any(isinstance(finder, Finder) for finder in sys.meta_path)


# By name only: the launcher lies above this folder, and is imported by whoever asks for it.
_LAUNCHERS = {"distributed.launch": "fleet_mpi.launch", "distributed.launch.__main__": "fleet_mpi.launch.__main__",
              "distributed.fleet.launch": "fleet_mpi.launch.__main__",
              "distributed.launch_ps": "fleet_mpi.launch.launch_ps"}


# Modules that go by another name in some version of the original, with all below them; a longer path comes first.
_DYGRAPH = ("backward_strategy", "base", "checkpoint", "container", "io", "jit", "layers", "learning_rate_scheduler",
            "nn",
            "parallel", "tracer", "varbase_patch_methods")
_NN_LAYER = ("activation", "common", "container", "conv", "distance", "extension", "layers", "loss", "norm", "pooling",
             "rnn", "transformer", "vision")
_TEXTS = ("conll05", "imdb", "imikolov", "movielens", "uci_housing", "wmt14", "wmt16")
_PICTURES = ("cifar", "flowers", "folder", "mnist", "voc2012")
_NETWORKS = ("lenet", "mobilenetv1", "mobilenetv2", "resnet", "vgg")
# Files of the original whose names one module here has: {module: (above, files)}.
_FILES = {
    "fleet_mpi.fluid.contrib.layers": ("fluid.contrib.layers", "metric_op nn rnn_impl"),
    "fleet_mpi.fluid.contrib.mixed_precision": ("fluid.contrib.mixed_precision", "amp_nn fp16_lists fp16_utils"),
    "fleet_mpi.fluid.contrib.slim": ("fluid.contrib.slim", "core distillation graph nas prune quantization searcher"),
    "fleet_mpi.fluid.dygraph": ("fluid.dygraph", "amp dygraph_to_static math_op_patch profiler rnn"),
    "fleet_mpi.paddle.distributed": ("distributed", "collective entry_attr parallel"),
    "fleet_mpi.paddle.distributed.fleet": ("distributed.fleet", "data_generator dataset"),
    "fleet_mpi.paddle.io": ("fluid.dataloader", "batch_sampler collate dataset sampler worker"),
    "fleet_mpi.paddle.metric": ("metric", "metrics"),
    "fleet_mpi.paddle.nn": ("nn", "clip decode"),
    "fleet_mpi.paddle.nn.functional": ("nn.functional",
                                       "activation common conv extension input loss norm pooling vision"),
    "fleet_mpi.paddle.nn.initializer": ("nn.initializer", "assign constant kaiming normal uniform xavier"),
    "fleet_mpi.paddle.optimizer": ("optimizer",
                                   "adadelta adagrad adam adamax adamw lamb momentum optimizer rmsprop sgd"),
    "fleet_mpi.paddle.nn.utils": ("nn.utils", "spectral_norm_hook weight_norm_hook"),
    "fleet_mpi.paddle.static": ("static", "input"),
    "fleet_mpi.paddle.utils": ("utils", "lazy_import"),
    "fleet_mpi.paddle.vision.transforms.functional": ("vision.transforms", "functional_cv2 functional_pil"),
}
ELSEWHERE = {
    **{f"{above}.{file}": ours for ours, (above, files) in _FILES.items() for file in files.split()},
    "fluid.dataloader": "fleet_mpi.paddle.io",
    "fluid.transpiler.details.checkport": "fleet_mpi.paddle.distributed.fleet.base.private_helper_function",
    "utils.install_check": "fleet_mpi.fluid.install_check",
    "utils.profiler": "fleet_mpi.fluid.profiler",
    "tensor.to_string": "fleet_mpi.paddle.modes",
    "fluid.core_avx": "fleet_mpi.fluid.core",
    "fluid.core_noavx": "fleet_mpi.fluid.core",
    "fluid.contrib.utils.hdfs_utils": "fleet_mpi.fluid.contrib.utils",
    "fluid.dygraph_utils": "fleet_mpi.fluid.dygraph",
    "imperative": "fleet_mpi.fluid.dygraph",
    "plot": "fleet_mpi.paddle.utils.plot",
    "callbacks": "fleet_mpi.paddle.hapi.callbacks",
    "incubate.hapi": "fleet_mpi.paddle.hapi",
    "reader.decorator": "fleet_mpi.paddle.reader",
    **{f"{top}.dygraph.{name}": "fleet_mpi.fluid.dygraph" for top in ("fluid", "base") for name in _DYGRAPH},
    **{f"nn.layer.{name}": "fleet_mpi.paddle.nn.layer" for name in _NN_LAYER},
    "fluid.contrib.quantize": "fleet_mpi.fluid.contrib.slim",
    "incubate.distributed.fleet.base": "fleet_mpi.fluid.incubate.fleet.base.fleet_base",
    "incubate.distributed.fleet.role_maker": "fleet_mpi.fluid.incubate.fleet.base.role_maker",
    "incubate.distributed.fleet": "fleet_mpi.fluid.incubate.fleet",
    "distributed.transpiler": "fleet_mpi.fluid.transpiler",
    **{f"framework.{name}": "fleet_mpi.paddle.framework" for name in ("dtype", "framework", "io", "random")},
    "framework.core": "fleet_mpi.fluid.core",
    **{f"text.datasets.{name}": "fleet_mpi.paddle.text.datasets" for name in _TEXTS},
    **{f"vision.datasets.{name}": "fleet_mpi.paddle.vision.datasets" for name in _PICTURES},
    **{f"vision.models.{name}": f"fleet_mpi.program.models.{name}" for name in _NETWORKS},
    "vision.transforms.transforms": "fleet_mpi.paddle.vision.transforms",
    "static.nn.common": "fleet_mpi.paddle.static.nn",
    "static.nn.control_flow": "fleet_mpi.fluid.layers.control_flow",
    "base": "fleet_mpi.fluid",
    "core": "fleet_mpi.fluid.core",
    "fluid": "fleet_mpi.fluid",
}


def our_name(name):
    """The module of this package that a ``paddle`` module name stands for.

    Below ``paddle.v2`` are the later modules; what lies elsewhere is in a table.
    """
    _, _, rest = name.partition(".")
    rest = rest.removeprefix("v2.")
    if rest in _LAUNCHERS:
        return _LAUNCHERS[rest]
    for made in (refused_modules, function_modules):
        if rest in made.TABLE:
            return f"{made.__name__}.{made.flat(rest)}"
    for path, ours in ELSEWHERE.items():
        if rest == path or rest.startswith(path + "."):
            return ours + rest.removeprefix(path)
    return "fleet_mpi.paddle" + ("." + rest if rest else "")


class Finder(importlib.abc.MetaPathFinder):
    """Finds ``paddle`` and ``paddle.*`` in this package."""

    def find_spec(self, fullname, path=None, target=None):
        """The spec of the module that stands for ``fullname``, or None where it is no paddle name."""
        if fullname != "paddle" and not fullname.startswith("paddle."):
            return None
        real = our_name(fullname)
        try:
            found = importlib.util.find_spec(real)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise ModuleNotFoundError(f"fleet_mpi has no module that stands for {fullname!r} (or not yet); "
                                      f"{_nearest_module(fullname)}", name=fullname)
        return importlib.machinery.ModuleSpec(fullname, Loader(real), is_package=found.submodule_search_locations
                                              is not None)


class Loader(importlib.abc.Loader):
    """Hands out the module of this package instead of making a new one."""

    def __init__(self, real):
        self.real = real

    def create_module(self, spec):
        """The real module; its own spec is put back by ``exec_module``."""
        module = importlib.import_module(self.real)
        self.spec, self.name = module.__spec__, module.__name__
        return module

    def exec_module(self, module):
        """The module is loaded already; undo what the import system wrote over."""
        module.__spec__, module.__name__ = self.spec, self.name

    def get_code(self, fullname):
        """The code of the real module, for ``python -m fleet_mpi -m paddle.x``."""
        return importlib.util.find_spec(self.real).loader.get_code(self.real)


def named_in(error):
    """What an ImportError is about, said with the nearest name that exists; None where it is not about our names.

    ``from module import name`` asks the module for the name and drops its answer, so it is asked again here.
    """
    if isinstance(error, ModuleNotFoundError):
        ours = (error.name or "").split(".")[0] == "paddle"
        return UnknownName(str(error)) if ours else None
    wanted = re.match(r"cannot import name '(\w+)' from '(fleet_mpi\.[\w.]+)'", str(error))
    if wanted is None or wanted[2] not in sys.modules:
        return None
    try:
        getattr(sys.modules[wanted[2]], wanted[1])
    except UnknownName as unknown:
        return unknown
    return None


def _nearest_module(fullname):
    """The end of a sentence: the modules beside the one that is missing."""
    above, _, last = fullname.rpartition(".")
    beside = importlib.util.find_spec(our_name(above)).submodule_search_locations
    return nearest(last, [module.name for module in pkgutil.iter_modules(beside or ())])


def _installed():
    try:
        return on_path.installed() is not None
    except (ImportError, ValueError):
        return False
