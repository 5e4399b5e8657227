"""CIFAR and flowers: a sample is (a picture in colours, its class as int64)."""

import numpy as np

from fleet_mpi.data.images.loading import decoded
from fleet_mpi.data.sets import cifar, flowers
from fleet_mpi.data.sets_by_number.pictures import Pictures
from fleet_mpi.data.sets_by_number.samples import paths_of


class Cifar10(Pictures):
    """Pictures of 32 x 32 in 10 classes; the class is an array without dimensions, as in the original."""

    _classes, _url, _md5 = 10, cifar.CIFAR10_URL, cifar.CIFAR10_MD5
    _flags = {"train": "data_batch", "test": "test_batch"}

    def __init__(self, data_file=None, mode="train", transform=None, download=True, backend=None):
        super().__init__(mode, ("train", "test"), transform, backend)
        paths = paths_of(self, download, "cifar", {self._url: (data_file, self._md5)})
        self.data_file, self.flag = paths[0] if paths else None, self._flags[self.mode]
        self.data = self._read() if paths else cifar.drawn(self._classes, self.mode)

    def _read(self):
        """The samples of all members, these by name."""
        batches = sorted(cifar.batches(self.data_file, self.flag), key=lambda batch: batch[0])
        return [(pixels.reshape(3, 32, 32).transpose(1, 2, 0), label) for _, samples in batches
                for pixels, label in samples]

    def __getitem__(self, idx):
        pixels, label = self.data[idx]
        return self._from_array(pixels), np.array(label, np.int64)

    def __len__(self):
        return len(self.data)


class Cifar100(Cifar10):
    """Pictures of 32 x 32 in 100 classes."""

    _classes, _url, _md5 = 100, cifar.CIFAR100_URL, cifar.CIFAR100_MD5
    _flags = {"train": "train", "test": "test"}


class Flowers(Pictures):
    """Flowers of 102 kinds; the class is int64 [1] from **1** to 102, as the original gives it.

    The archive is read through once, when the first picture is asked for; its compressed pictures of this part are
    kept.
    """

    _flags = {"train": flowers.TRAIN_FLAG, "test": flowers.TEST_FLAG, "valid": flowers.VALID_FLAG}

    def __init__(self, data_file=None, label_file=None, setid_file=None, mode="train", transform=None, download=True,
                 backend=None):
        super().__init__(mode, ("train", "valid", "test"), transform, backend)
        self.flag = self._flags[self.mode]
        paths = paths_of(self, download, "flowers", {
            flowers.DATA_URL: (data_file, flowers.DATA_MD5), flowers.LABEL_URL: (label_file, flowers.LABEL_MD5),
            flowers.SETID_URL: (setid_file, flowers.SETID_MD5)})
        self.data_file, self.label_file, self.setid_file = paths or (None, None, None)
        self._labels = list(flowers.labels_by_name(*paths[1:], self.flag).items()) if paths else None
        self._drawn = None if paths else flowers.drawn(self.flag)
        self._contents = {}

    def __getitem__(self, idx):
        if self._labels is None:
            pixels, label = self._drawn[idx]
            return self._from_array(pixels), np.array([label + 1])
        name, label = self._labels[idx]
        return self._transformed(decoded(self._content(name), self.backend)), np.array([label + 1])

    def _content(self, name):
        if not self._contents:
            self._contents = dict(flowers.members(self.data_file, dict(self._labels)))
        return self._contents[name]

    def __getstate__(self):
        # A worker process reads the archive itself: hundreds of megabytes are not sent to it.
        return {**vars(self), "_contents": {}}

    def __len__(self):
        return len(self._drawn if self._labels is None else self._labels)
