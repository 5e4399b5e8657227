"""ParamAttr with the argument list of 2.x."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.build import param_attr as _param_attr


class ParamAttr(_param_attr.ParamAttr):
    """How a parameter is named, initialised, regularised and trained."""

    def __init__(self, name=None, initializer=None, learning_rate=1.0, regularizer=None, trainable=True,
                 do_model_average=True, need_clip=True):
        super().__init__(name, initializer, learning_rate, regularizer, trainable,
                         do_model_average=do_model_average, need_clip=need_clip)


__getattr__ = _missing_name("paddle.param_attr", globals())
