"""``paddle.io``: datasets, samplers and loaders."""

from fleet_mpi.data.collating import default_collate_fn, default_convert_fn
from fleet_mpi.data.data_loader import DataLoader
from fleet_mpi.data.fetching import get_worker_info
from fleet_mpi.data.io_datasets import (ChainDataset, ComposeDataset, ConcatDataset, Dataset, IterableDataset, Subset,
                                        TensorDataset, random_split)
from fleet_mpi.data.samplers import BatchSampler, RandomSampler, Sampler, SequenceSampler, WeightedRandomSampler
from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.batch_sampling import DistributedBatchSampler

__path__ = []  # those below it are found elsewhere: see standing_in.ELSEWHERE

__getattr__ = _missing_name("paddle.io", globals())
