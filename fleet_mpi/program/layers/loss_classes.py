"""Losses as layer classes of ``paddle.nn``, beside those of classes.py."""

from fleet_mpi.errors import UsageError
from fleet_mpi.program.layers import functional_loss, math
from fleet_mpi.program.layers.classes import OfArguments
from fleet_mpi.program.layers.layer import Layer


class NLLLoss(OfArguments):
    """The negative log likelihood of class numbers."""

    function = staticmethod(functional_loss.nll_loss)

    def __init__(self, weight=None, ignore_index=-100, reduction="mean", name=None):
        super().__init__(weight, ignore_index, reduction, name)


class KLDivLoss(OfArguments):
    """The Kullback-Leibler divergence."""

    function = staticmethod(functional_loss.kl_div)

    def __init__(self, reduction="mean"):
        super().__init__(reduction)


class SmoothL1Loss(OfArguments):
    """Huber's loss."""

    function = staticmethod(functional_loss.smooth_l1_loss)

    def __init__(self, reduction="mean", delta=1.0, name=None):
        super().__init__(reduction, delta, name)


class MarginRankingLoss(OfArguments):
    """max(0, margin - label (input - other))."""

    function = staticmethod(functional_loss.margin_ranking_loss)

    def __init__(self, margin=0.0, reduction="mean", name=None):
        super().__init__(margin, reduction, name)


class CTCLoss(Layer):
    """The CTC cost of padded sequences."""

    def __init__(self, blank=0, reduction="mean"):
        super().__init__()
        self.blank, self.reduction = blank, reduction

    def forward(self, log_probs, labels, input_lengths, label_lengths, norm_by_times=False):
        """One number, or one for each sequence."""
        return functional_loss.ctc_loss(log_probs, labels, input_lengths, label_lengths, self.blank, self.reduction,
                                        norm_by_times)


class HSigmoidLoss(Layer):
    """The cost of the decisions on the way to a label in a binary tree of classes, with a weight for each node."""

    def __init__(self, feature_size, num_classes, weight_attr=None, bias_attr=None, is_custom=False, is_sparse=False,
                 name=None):
        super().__init__()
        if not is_custom and num_classes < 2:
            raise UsageError(f"HSigmoidLoss: expected num_classes from 2 up, got {num_classes!r}")
        rows = num_classes if is_custom else num_classes - 1
        self.weight = self.create_parameter([rows, feature_size], weight_attr)
        self.bias = self.create_parameter([rows, 1], bias_attr, is_bias=True)
        self._is_custom, self._arguments = is_custom, (num_classes, is_sparse, name)

    def forward(self, input, label, path_table=None, path_code=None):
        """[rows, 1]; a tree of one's own is told by its paths."""
        if self._is_custom and (path_table is None or path_code is None):
            raise UsageError("HSigmoidLoss: is_custom=True needs path_table and path_code")
        classes, is_sparse, name = self._arguments
        return functional_loss.hsigmoid_loss(input, label, classes, self.weight, self.bias, path_table, path_code,
                                             is_sparse, name)


class PairwiseDistance(Layer):
    """The p-norm of the difference of two batches of vectors, row by row."""

    def __init__(self, p=2.0, epsilon=1e-6, keepdim=False, name=None):
        super().__init__()
        self.p, self.epsilon, self.keepdim, self.name = p, epsilon, keepdim, name

    def forward(self, x, y):
        """[rows], or [rows, 1]; ``epsilon`` keeps the gradient finite where the two are equal."""
        return math.p_norm(math.elementwise_sub(x, y), self.p, 1, self.keepdim, self.name, self.epsilon)
