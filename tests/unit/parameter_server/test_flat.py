"""Every byte of a variable has one place in one image and one piece, for any cut."""

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fleet_mpi.arrays import ALIGNMENT_BYTES as ALIGNMENT, aligned
from fleet_mpi.parameter_server.flat import FlatLayout, ServerImage
from fleet_mpi.placement import Variable, place
from fleet_mpi.wire import protocol

shapes = st.lists(st.integers(0, 40), max_size=3).map(tuple)
variables = st.lists(st.tuples(shapes, st.sampled_from(["float32", "float64", "float16"])), min_size=1, max_size=8).map(
    lambda drawn: [Variable(f"v{number}", shape, dtype) for number, (shape, dtype) in enumerate(drawn)])
cut = st.fixed_dictionaries({"servers": st.integers(1, 5), "slice_up": st.booleans(),
                             "method": st.sampled_from(["RoundRobin", "HashName", "Balanced"]),
                             "min_block_size": st.sampled_from([1, 30, 8192])})
limits = st.sampled_from([(1 << 20, 1 << 18), (1024, 256), (128, 64), (4096, 4096)])


@contextmanager
def lowered(piece, long_run):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "PIECE", piece)
        patch.setattr(protocol, "LONG_RUN", long_run)
        yield


def drawn(layout, seed=0):
    """A flat array in which every byte of a variable differs from run to run, and gaps hold rubbish."""
    flat = layout.new_array()
    flat[...] = np.random.default_rng(seed).integers(0, 256, flat.size, dtype=np.uint8)
    return flat


def images(layout, placement):
    return [ServerImage(layout, placement.of_server(server)) for server in range(placement.servers)]


@given(variables)
def test_variables_lie_apart_each_on_a_cache_line(variables):
    layout = FlatLayout(variables)
    flat = layout.new_array()
    assert (flat.size == 0 or flat.ctypes.data % ALIGNMENT == 0) and not flat.any()
    for number, (name, view) in enumerate(layout.views(flat).items()):
        assert (view.shape, view.dtype) == (layout.variables[name].shape, layout.variables[name].dtype)
        assert view.size == 0 or view.ctypes.data % ALIGNMENT == 0
        view[...] = number + 1
    for number, view in enumerate(layout.views(flat).values()):
        assert (view == number + 1).all()
    covered = np.zeros(layout.nbytes, bool)
    for start, stop, _ in layout.ranges:
        covered[start:stop] = True
    assert all(covered[start:start + view.nbytes].all()
               for start, view in zip(layout.starts.values(), layout.views(flat).values()))


@settings(max_examples=60)
@given(variables, cut, limits)
def test_gathering_all_pieces_and_scattering_them_changes_nothing(variables, cut, limits):
    with lowered(*limits):
        layout, placement = FlatLayout(variables), place(variables, **cut)
        source, target = drawn(layout), layout.new_array()
        for server in images(layout, placement):
            image = np.full(server.nbytes, 0xAA, np.uint8)
            for piece in server.pieces:
                part = image[piece.start:piece.stop]
                piece.gather(source, part)
                place_of_it = piece.in_place(source)
                assert place_of_it is None or np.array_equal(place_of_it, part)
                piece.scatter(part, target)
            for index, shard in enumerate(server.shards):
                whole = layout.views(source)[shard.variable].reshape(-1)
                expected = whole[shard.offset:shard.offset + shard.size].reshape(shard.shape)
                assert server.view(image, index).tobytes() == expected.tobytes()
    for before, after in zip(layout.views(source).values(), layout.views(target).values()):
        assert before.tobytes() == after.tobytes()


@settings(max_examples=60)
@given(variables, cut, limits)
def test_pieces_follow_each_other_none_is_long_and_their_ranges_have_all_elements(variables, cut, limits):
    with lowered(*limits):
        layout = FlatLayout(variables)
        for server in images(layout, place(variables, **cut)):
            ends = [0, *(piece.stop for piece in server.pieces)]
            assert all(end <= piece.start for end, piece in zip(ends, server.pieces))
            assert all(piece.stop - piece.start <= limits[0] for piece in server.pieces)
            assert len(server.pieces) == 1 or server.nbytes > limits[0] or not server.nbytes
            elements = {}
            for piece, ranges in zip(server.pieces, server.ranges, strict=True):
                for start, stop, dtype in ranges:
                    assert piece.start <= start < stop <= piece.stop and (stop - start) % dtype.itemsize == 0
                    elements |= {position: dtype for position in range(start, stop, dtype.itemsize)}
            for begin, shard, dtype in zip(server.starts, server.shards, server.dtypes):
                stop = begin + shard.size * dtype.itemsize
                assert all(elements.get(position) == dtype for position in range(begin, stop, dtype.itemsize))


def test_with_one_server_nothing_is_copied():
    variables = [Variable("a", (500, 300)), Variable("b", (7,)), Variable("c", (200, 1000))]
    layout = FlatLayout(variables)
    (server,), flat = images(layout, place(variables, 1)), drawn(layout)
    assert len(server.pieces) == 2 and all(piece.in_place(flat) is not None for piece in server.pieces)
    assert sum(piece.stop - piece.start for piece in server.pieces) == aligned(600000) + aligned(28) + 800000


def test_short_runs_are_gathered_and_long_ones_are_not():
    variables = [Variable(f"v{number}", (size,)) for number, size in enumerate([100, 100, 3000, 100, 100, 100])]
    with lowered(4096, 1024):
        server, _ = images(FlatLayout(variables), place(variables, 2, "RoundRobin", slice_up=True, min_block_size=1500))
    flat = drawn(FlatLayout(variables))
    kinds = [piece.in_place(flat) is not None for piece in server.pieces]
    assert [len(piece.runs) for piece in server.pieces] == [1, 1, 1, 2]
    assert kinds == [True, True, True, False]


def test_a_server_without_shards_has_no_pieces():
    variables = [Variable("a", (3,))]
    empty = [one for one in images(FlatLayout(variables), place(variables, 3)) if not one.shards]
    assert [(one.nbytes, one.pieces, one.ranges) for one in empty] == [(0, [], [])] * 2
