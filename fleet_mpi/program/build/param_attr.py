"""ParamAttr: how a layer's parameter is named, initialised, regularised and trained."""

from fleet_mpi.errors import UsageError
from fleet_mpi.program.build.initializers import Initializer
from fleet_mpi.program.build.regularizers import Regularizer
from fleet_mpi.program.graph import unique_name


class ParamAttr:
    """The settings of one parameter; layers also take a name, an initializer or a regularizer instead."""

    # Of an attribute whose weight is computed from other parameters: makes it, for LayerHelper.create_parameter.
    make = None

    def __init__(self, name=None, initializer=None, learning_rate=1.0, regularizer=None, trainable=True,
                 gradient_clip=None, do_model_average=True, need_clip=True):
        self.name = name
        self.initializer = initializer
        self.learning_rate = learning_rate
        self.regularizer = regularizer
        self.trainable = trainable
        self.gradient_clip = gradient_clip
        self.do_model_average = do_model_average
        self.need_clip = need_clip

    @staticmethod
    def _to_attr(given):
        return as_param_attr(given)

    def fields(self):
        """The arguments of ``create_parameter`` that this sets."""
        return dict(trainable=self.trainable, optimize_attr={"learning_rate": self.learning_rate},
                    regularizer=self.regularizer, do_model_average=self.do_model_average,
                    need_clip=self.need_clip, gradient_clip_attr=self.gradient_clip)

    def with_name(self, name):
        """A copy that has a name of its own if this one has none."""
        twin = ParamAttr.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.name = self.name or name
        return twin


def as_param_attr(given):
    """A ParamAttr from None, a name, an initializer, a regularizer or True; False for 'no such parameter'."""
    if given is False:
        return False
    if given is None or given is True:
        return ParamAttr()
    if isinstance(given, ParamAttr):
        return given
    if isinstance(given, str):
        return ParamAttr(name=given)
    if isinstance(given, Initializer):
        return ParamAttr(initializer=given)
    if isinstance(given, Regularizer):
        return ParamAttr(regularizer=given)
    if isinstance(given, (list, tuple)):
        return [as_param_attr(one) for one in given]
    raise UsageError(f"param_attr: expected a ParamAttr, name, initializer or regularizer, "
                     f"got {type(given).__name__}")


def named(attr, layer_name, suffix):
    """The attribute with a name: its own, or ``<layer>.w_0``."""
    return attr.with_name(unique_name.generate(f"{layer_name}.{suffix}"))
