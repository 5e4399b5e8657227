"""``fluid.layers.loss``: what training makes small."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers.loss import (bpr_loss, cross_entropy, dice_loss, huber_loss, kldiv_loss, label_smooth,
                                           log_loss, margin_rank_loss, mse_loss, rank_loss,
                                           sigmoid_cross_entropy_with_logits, smooth_l1, softmax_with_cross_entropy)
from fleet_mpi.program.layers.math import square_error_cost

_LATE = {**dict.fromkeys(("hsigmoid", "nce", "sampled_softmax_with_cross_entropy"),
                         "fleet_mpi.program.layers.sampled_loss"),
         **dict.fromkeys(("edit_distance", "warpctc"), "fleet_mpi.program.layers.sequence_labels"),
         **dict.fromkeys(("center_loss", "npair_loss", "teacher_student_sigmoid_loss"),
                         "fleet_mpi.program.layers.embedding_loss")}

__getattr__ = _missing_name("paddle.fluid.layers.loss", globals(), _LATE)
