"""The hash of names: known values, and the same in every process."""

import os
import subprocess
import sys

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from fleet_mpi.placement import hashing


@pytest.mark.parametrize("name, expected", (
    ("", 0xcbf29ce484222325), ("a", 0xaf63dc4c8601ec8c), ("foobar", 0x85944171f73967e8),
))
def test_known_values(name, expected):
    assert hashing.fnv1a(name) == expected


@hypothesis.given(st.lists(st.text(max_size=12), max_size=20))
def test_the_compiled_hash_is_the_plain_one(names):
    texts = [name.encode() for name in names]
    ends = np.cumsum(np.array([len(text) for text in texts], np.int64))
    got = hashing.compiled_hash()(np.frombuffer(b"".join(texts), np.uint8), ends)
    assert got.dtype == np.uint64 and got.tolist() == [hashing.fnv1a(name) for name in names]


def test_many_names_are_hashed_as_few_are():
    names = [f"fc_{at}.größe" for at in range(hashing.FEW + 1)]
    assert hashing.hash_all(names).tolist() == [hashing.fnv1a(name) for name in names]


def test_servers_are_the_same_in_processes_that_hash_strings_differently_b2():
    program = ("from fleet_mpi.placement import place; "
               "print(hash('w'), [s.server for s in place([(f'v{i}', (9000 * i,)) for i in range(40)], 7, "
               "'HashName').shards])")
    said = [subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, text=True,
                           capture_output=True, timeout=60, check=True).stdout.split(" ", 1) for seed in ("1", "2")]
    assert said[0][0] != said[1][0] and said[0][1] == said[1][1]
