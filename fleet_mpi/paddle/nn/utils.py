"""``paddle.nn.utils``: changes of layers that exist already; they need eager mode."""

from fleet_mpi.errors import missing_name as _missing_name

__path__ = []  # those below it are found elsewhere: see standing_in.ELSEWHERE

__getattr__ = _missing_name("paddle.nn.utils", globals(), refused={
    **dict.fromkeys(("weight_norm", "remove_weight_norm"),
                    "it changes a layer that is made already, which eager mode only can; give the "
                    "layer weight_attr=paddle.static.WeightNormParamAttr(...)"),
    "spectral_norm": "it changes a layer that is made already, which eager mode only can; call "
                     "paddle.nn.SpectralNorm(shape)(weight) in forward"})
