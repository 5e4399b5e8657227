"""``fluid.contrib.decoder``: recurrent decoders, step by step or with a beam."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fluid.contrib.decoder.beam_search_decoder import (BeamSearchDecoder, InitState, StateCell,
                                                                  TrainingDecoder)

__getattr__ = _missing_name("paddle.fluid.contrib.decoder", globals())
