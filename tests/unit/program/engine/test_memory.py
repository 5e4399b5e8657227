"""fleet_mpi/program/engine/memory.py: buffers that live at the same time do not meet, whatever their sizes."""

import numpy as np
from hypothesis import given, settings, strategies as st

from fleet_mpi.arrays import ALIGNMENT_BYTES
from fleet_mpi.program.engine import memory
from fleet_mpi.program.engine.memory import Arena, Buffer, place

lives = st.lists(st.tuples(st.integers(-1, 20), st.integers(0, 8), st.integers(0, 300)), max_size=30)


def buffers_of(lives):
    made = []
    for start, length, size in lives:
        made.append(Buffer(start, size))
        made[-1].end = start + length
    return made


def meet(one, other):
    return (one.start <= other.end and other.start <= one.end
            and one.offset < other.offset + other.size_bytes and other.offset < one.offset + one.size_bytes)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(lives, st.sampled_from([0, 1 << 20]))
def test_buffers_that_live_at_the_same_time_do_not_meet(lives, share_from):
    made = buffers_of(lives)
    before, memory.SHARE_FROM_BYTES = memory.SHARE_FROM_BYTES, share_from
    try:
        total = place(made)
    finally:
        memory.SHARE_FROM_BYTES = before
    assert not any(meet(one, other) for i, one in enumerate(made) for other in made[:i])
    assert all(one.offset % ALIGNMENT_BYTES == 0 and one.offset + one.size_bytes <= total for one in made)


def test_buffers_one_after_the_other_take_the_place_of_one(monkeypatch):
    monkeypatch.setattr(memory, "SHARE_FROM_BYTES", 0)
    made = buffers_of([(2 * i, 1, 640) for i in range(10)])
    assert place(made) == 640


def test_an_arena_grows_and_has_its_users_let_go_first():
    left = []
    arena = Arena(let_go=lambda: left.append(arena._bytes.size))
    for size in (100, 50, 200):
        arena.reserve(size)
    assert left == [0, 100] and arena._bytes.size == 200


def test_views_lie_in_the_arena():
    arena = Arena()
    arena.reserve(256)
    arena.view(64, (2, 3), np.float32)[...] = 7
    assert (arena.view(64, (6,), np.float32) == 7).all()
    assert arena.view(64, (2, 3), np.float32).ctypes.data % ALIGNMENT_BYTES == 0
