"""Synthetic pictures: repeatable, different by class and by number."""

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.data.sets import cifar, flowers
from fleet_mpi.data.sets.coloured_patterns import picture


def test_a_picture_depends_on_label_and_number_only():
    assert (picture(3, 32, 10, 5) == picture(3, 32, 10, 5)).all()
    assert (picture(3, 32, 10, 5) != picture(3, 32, 10, 6)).any()
    assert (picture(3, 32, 10, 5) != picture(4, 32, 10, 5)).any()


def test_pictures_are_bytes_of_the_size_asked_for():
    image = picture(0, 48, 102, 0)
    assert image.shape == (48, 48, 3) and image.dtype == np.uint8


def test_pictures_of_one_class_are_nearer_than_those_of_others():
    images = [[picture(label, 32, 10, number).astype(float) for number in range(3)] for label in range(10)]
    within = np.mean([np.abs(a[0] - a[1]).mean() for a in images])
    between = np.mean([np.abs(images[a][0] - images[b][0]).mean() for a in range(10) for b in range(a)])
    assert within < 0.7 * between


@pytest.mark.parametrize("reader", (lambda: flowers.train(use_xmap=False, mapper=lambda sample: sample), cifar.train10))
def test_a_setting_makes_a_set_short_for_a_short_run(data_home, reader):
    with settings.override(FLEET_MPI_SYNTHETIC_SAMPLES=7):
        assert len(list(reader()())) == 7
