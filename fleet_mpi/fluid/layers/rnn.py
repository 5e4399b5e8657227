"""``fluid.layers.rnn``: recurrent layers, and decoding with a beam."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers.beam_search import beam_search, beam_search_decode
from fleet_mpi.program.layers.recurrent import dynamic_gru, dynamic_lstm, gru_unit, lstm_unit

_HERE = "fleet_mpi.program.layers."
_LATE = {**dict.fromkeys(("RNNCell", "GRUCell", "LSTMCell", "rnn", "birnn"), _HERE + "rnn_cells"),
         **dict.fromkeys(("Decoder", "BasicDecoder", "DecodeHelper", "TrainingHelper", "GreedyEmbeddingHelper",
                          "SampleEmbeddingHelper", "dynamic_decode"), _HERE + "decoding"),
         "BeamSearchDecoder": _HERE + "beam_decoder", "lstm": _HERE + "stacked_rnn",
         "dynamic_lstmp": _HERE + "projected_lstm"}

__getattr__ = _missing_name("paddle.fluid.layers.rnn", globals(), _LATE)
