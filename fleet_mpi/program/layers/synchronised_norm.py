"""``paddle.nn.SyncBatchNorm``: batch norm by the statistics of all workers' batches in a job of equal workers."""

from fleet_mpi.program.graph.sync_batch_norm import MARK
from fleet_mpi.program.layers.classes import _BatchNormBase


class SyncBatchNorm(_BatchNormBase):
    """Batch norm whose mean and variance are those over all workers; in one process, of its own batch."""

    def __init__(self, num_features, momentum=0.9, epsilon=1e-05, weight_attr=None, bias_attr=None, data_format="NCHW",
                 name=None):
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, name=name)

    def forward(self, x):
        """Normalised; the op is marked for the job to find."""
        made = super().forward(x)
        made.op.attrs[MARK] = True
        return made

    @classmethod
    def convert_sync_batchnorm(cls, layer):
        """The layer with every batch norm below it turned into one of this class, parameters and all."""
        if isinstance(layer, _BatchNormBase):
            activates = type(layer).forward is not _BatchNormBase.forward
            layer.__class__ = _with_activation(cls, type(layer)) if activates else cls
            return layer
        for one in layer.children():
            cls.convert_sync_batchnorm(one)
        return layer


def _with_activation(cls, kind):
    """A class that normalises as ``cls`` inside what ``kind`` does with the result."""
    return type(cls.__name__, (kind, cls), {})
