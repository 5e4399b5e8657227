"""fleet_mpi/errors.py."""

from fleet_mpi.errors import nearest


def test_the_nearest_names_are_said_once_each():
    assert nearest("lable", ["label", "image", "label"]) == "did you mean 'label'?"


def test_without_a_near_one_all_are_listed_in_order_and_once():
    assert nearest("zzz", ["b", "a", "b"]) == "known are: a, b"
