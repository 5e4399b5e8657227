"""``fluid.transpiler.inference_transpiler``: programs made faster for inference, which plans do in any case."""

from fleet_mpi.errors import missing_name as _missing_name


class InferenceTranspiler:
    """Nothing is changed: a plan fuses what it can when a program runs."""

    def transpile(self, program, place, scope=None):
        """Leave the program and the parameters as they are; results stay the same."""


__getattr__ = _missing_name("paddle.fluid.transpiler.inference_transpiler", globals())
