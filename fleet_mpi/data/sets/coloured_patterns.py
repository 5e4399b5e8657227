"""Synthetic photographs by class: each class has its own colours and its own stripes.

Serves the image sets whose files are not there. Colour alone tells some classes, stripes the rest.
"""

from functools import lru_cache

import numpy as np

from fleet_mpi import settings


def limited(count):
    """How many pictures of a part of a set are made: all, or as few as FLEET_MPI_SYNTHETIC_SAMPLES allows."""
    return min(count, settings.get("FLEET_MPI_SYNTHETIC_SAMPLES") or count)


@lru_cache(maxsize=128)
def class_picture(label, size, seed):
    """The noise-free picture of a class: uint8 [size, size, 3]."""
    rng = np.random.default_rng([seed, label])
    base = rng.uniform(60.0, 195.0, 3)
    swing = rng.uniform(-110.0, 110.0, 3)
    # Stripes of 2 to 8 periods over the picture, so that small and large sizes show the same pattern.
    waves_x, waves_y = rng.integers(2, 9, 2)
    y, x = np.mgrid[0:size, 0:size] / size
    stripes = np.sin(2 * np.pi * (waves_x * x + rng.choice([-1, 1]) * waves_y * y) + rng.uniform(0, 2 * np.pi))
    rings = np.cos(np.hypot(x - 0.5, y - 0.5) * 2 * np.pi * rng.uniform(1.0, 4.0))
    picture = base + swing * (0.7 * stripes + 0.3 * rings)[..., None]
    return np.clip(picture, 0.0, 255.0).astype(np.uint8)


class Drawn:
    """The pictures of one part of a made-up set by number, (uint8 [size, size, 3], label), each made when it is asked
    for."""

    def __init__(self, count, classes, size, part, parts):
        self.count, self.classes, self.size, self.part, self.parts = limited(count), classes, size, part, parts

    def __getitem__(self, number):
        if not -self.count <= number < self.count:
            raise IndexError(f"no picture {number} among {self.count}")
        number = int(number) % self.count
        # 37 has no common factor with the numbers of classes (10, 100, 102): each comes in turn, in mixed order.
        label = number * 37 % self.classes
        return picture(label, self.size, self.classes, self.parts * number + self.part), label

    def __len__(self):
        return self.count


def picture(label, size, seed, number):
    """The ``number``-th picture of a class: moved round, brighter or darker, with grain."""
    rng = np.random.default_rng([seed, label, number])
    # Moved by up to an eighth, so that a class keeps a recognisable phase.
    shift = tuple(rng.integers(0, max(2, size // 8), 2))
    moved = np.roll(class_picture(label, size, seed), shift, axis=(0, 1))
    grain = rng.integers(0, 41, moved.shape, dtype=np.uint8)
    brighter = int(rng.integers(0, 25))
    return np.clip(moved.astype(np.int16) + grain - 20 + brighter, 0, 255).astype(np.uint8)
