"""``fluid.contrib.decoder.beam_search_decoder``: decoders over a cell with named states."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers.cell_decoders import BeamSearchDecoder, TrainingDecoder
from fleet_mpi.program.layers.state_cell import InitState, StateCell

__getattr__ = _missing_name("paddle.fluid.contrib.decoder.beam_search_decoder", globals())
