"""Folders of image files as datasets, and the pictures of VOC 2012 with their masks."""

import os
import tarfile

from fleet_mpi.data import home, image_backend
from fleet_mpi.data.images.loading import coloured_array, coloured_image, decoded
from fleet_mpi.data.io_datasets import Dataset
from fleet_mpi.data.sets_by_number.pictures import Pictures
from fleet_mpi.data.sets_by_number.samples import files_of
from fleet_mpi.errors import CheckpointMissing, UsageError

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def default_loader(path):
    """An image file in red, green and blue: a Pillow image, or an array where the backend is cv2."""
    return coloured_array(path) if image_backend.get_image_backend() == "cv2" else coloured_image(path)


class _Files(Dataset):
    """Files below a folder that a test of their paths accepts, in alphabetical order, folder by folder."""

    def __init__(self, root, loader, extensions, transform, is_valid_file):
        if extensions is not None and is_valid_file is not None:
            raise UsageError(f"{type(self).__name__}: expected extensions or is_valid_file, got both")
        self.root, self.transform = root, transform
        self.loader = default_loader if loader is None else loader
        self.extensions = IMG_EXTENSIONS if extensions is None and is_valid_file is None else extensions
        self._is_valid_file = is_valid_file

    def _below(self, folder):
        """The paths of the files that count."""
        folder = os.path.expanduser(folder)
        if not os.path.isdir(folder):
            raise CheckpointMissing(f"{type(self).__name__}: expected a folder at {folder}, and there is none")
        walked = sorted((where, sorted(names)) for where, _, names in os.walk(folder, followlinks=True))
        return [os.path.join(where, name) for where, names in walked for name in names if self._counts(where, name)]

    def _counts(self, where, name):
        if self._is_valid_file is not None:
            return self._is_valid_file(os.path.join(where, name))
        return name.lower().endswith(tuple(ending.lower() for ending in self.extensions))

    def _require_samples(self):
        if not self.samples:
            raise UsageError(f"{type(self).__name__}: no file below {self.root} counts; expected "
                             f"{' '.join(self.extensions or ['one that is_valid_file accepts'])}")

    def _loaded(self, path):
        sample = self.loader(path)
        return sample if self.transform is None else self.transform(sample)

    def __len__(self):
        return len(self.samples)


class DatasetFolder(_Files):
    """A folder for each class: a sample is (the loaded file, the number of its class in alphabetical order)."""

    def __init__(self, root, loader=None, extensions=None, transform=None, is_valid_file=None):
        super().__init__(root, loader, extensions, transform, is_valid_file)
        self.classes, self.class_to_idx = self._find_classes(os.path.expanduser(root))
        self.samples = [(path, number) for name, number in self.class_to_idx.items()
                        for path in self._below(os.path.join(root, name))]
        self._require_samples()
        self.targets = [number for _, number in self.samples]

    def _find_classes(self, dir):
        if not os.path.isdir(dir):
            raise CheckpointMissing(f"{type(self).__name__}: expected a folder at {dir}, and there is none")
        classes = sorted(entry.name for entry in os.scandir(dir) if entry.is_dir())
        return classes, {name: number for number, name in enumerate(classes)}

    def __getitem__(self, index):
        path, target = self.samples[index]
        return self._loaded(path), target


class ImageFolder(_Files):
    """All files below a folder, without classes: a sample is a list of the loaded file alone."""

    def __init__(self, root, loader=None, extensions=None, transform=None, is_valid_file=None):
        super().__init__(root, loader, extensions, transform, is_valid_file)
        self.samples = self._below(root)
        self._require_samples()

    def __getitem__(self, index):
        return [self._loaded(self.samples[index])]


class VOC2012(Pictures):
    """Pictures and the masks of what they show, from VOCtrainval_11-May-2012.tar under ``DATA_HOME/voc2012``.

    There is no stand-in: without the file the set is refused. Masks are not transformed.
    """

    URL = "https://dataset.bj.bcebos.com/voc/VOCtrainval_11-May-2012.tar"
    MD5 = "6cd6e144f989b92b3379bac3b3de84fd"
    _flags = {"train": "trainval", "test": "train", "valid": "val"}

    def __init__(self, data_file=None, mode="train", transform=None, download=True, backend=None):
        super().__init__(mode, ("train", "valid", "test"), transform, backend)
        with files_of(self, download, {self.URL: data_file}):
            self.data_file = home.download(self.URL, "voc2012", self.MD5)
        self.flag = self._flags[self.mode]
        listed = self._read(f"ImageSets/Segmentation/{self.flag}.txt").decode().split()
        self.data = [f"JPEGImages/{name}.jpg" for name in listed]
        self.labels = [f"SegmentationClass/{name}.png" for name in listed]

    def __getitem__(self, idx):
        image, mask = (decoded(self._read(names[idx]), self.backend) for names in (self.data, self.labels))
        return self._transformed(image), mask if self.backend == "pil" else mask.astype(self.dtype)

    def _read(self, name):
        """The bytes of a member; the archive is not compressed, so its place is found once."""
        if "_places" not in vars(self):
            with tarfile.open(self.data_file) as archive:
                self._places = {member.name: (member.offset_data, member.size) for member in archive}
        at = self._places.get(f"VOCdevkit/VOC2012/{name}")
        if at is None:
            raise UsageError(f"VOC2012: {self.data_file} has no member VOCdevkit/VOC2012/{name}")
        with open(self.data_file, "rb") as file:
            file.seek(at[0])
            return file.read(at[1])

    def __len__(self):
        return len(self.data)
