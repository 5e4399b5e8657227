"""The shard table in numbers and as text."""

import pytest

from fleet_mpi.placement import place
from fleet_mpi.placement.plan import ServerLoad, plan

MODEL = [("w", (1000, 20)), ("b", (20,)), ("s", (), "float64")]


def test_loads_are_counted_per_server():
    made = plan(place(MODEL, 2))
    assert made.loads == (ServerLoad(0, 2, 2, 40_080, 2, 80_160), ServerLoad(1, 2, 2, 40_008, 2, 80_016))
    assert (made.size_bytes, made.messages_per_step, made.bytes_per_step) == (80_088, 4, 160_176)
    assert made.imbalance == pytest.approx(40_080 / 40_044)


def test_a_server_without_a_shard_is_asked_too():
    made = plan(place(MODEL, 3, slice_up=False, method="Balanced").only(["w"]))
    assert [load.messages_per_step for load in made.loads] == [2, 2, 2]
    assert made.imbalance == 3.0 and sorted(load.size_bytes for load in made.loads) == [0, 0, 80_000]


def test_messages_are_those_of_the_wire_when_it_says_them():
    assert plan(place(MODEL, 2), [5, 1]).messages_per_step == 12


def test_nothing_placed_is_even():
    made = plan(place([], 2))
    assert made.imbalance == 1.0 and "0 variables in 0 shards, 0 bytes on 2 servers" in made.text()


def test_the_text_has_every_shard_every_server_and_the_sum():
    assert plan(place(MODEL, 2)).text() == """\
server  shard     shape   first row  offset   bytes
     0  w.block0  500x20          0       0  40,000
     0  b         20              0       0      80
     1  w.block1  500x20        500  10,000  40,000
     1  s         scalar          0       0       8

server  variables  shards   bytes  share  messages/step  bytes/step
     0          2       2  40,080  50.0%              2      80,160
     1          2       2  40,008  50.0%              2      80,016

3 variables in 4 shards, 80,088 bytes on 2 servers; imbalance 1.001 (largest over mean); a worker's step is 4 messages \
and 160,176 bytes
"""
