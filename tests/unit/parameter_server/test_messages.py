"""Descriptions, arrays and errors come back as they were; damaged ones are refused with PeerLost, whatever they
hold."""

import json

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from fleet_mpi import errors
from fleet_mpi.errors import FleetError, PeerLost
from fleet_mpi.parameter_server import messages
from fleet_mpi.wire import protocol
from fleet_mpi.wire.protocol import HEADER_BYTES, Header, Kind

KEYS = st.one_of(st.tuples(st.just("param"), st.text(), st.integers(0, 99)),
                 st.tuples(st.just("state"), st.text(), st.integers(0, 99), st.text()),
                 st.tuples(st.sampled_from(["rate", "counter"]), st.text()))
ARRAYS = st.builds(lambda dtype, shape: np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape),
                   st.sampled_from(["bool", "int8", "uint8", "int64", "float16", "float32", "float64"]),
                   st.lists(st.integers(0, 5), max_size=4).map(tuple))
VALUES = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
                      | st.sampled_from(["param", "state", "rate", "<f4", "|O", "<f8", "|V8"]),
                      lambda inner: st.lists(inner, max_size=4)
                      | st.dictionaries(st.text(max_size=3), inner, max_size=3),
                      max_leaves=25)


def coded(value):
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


@given(named=st.dictionaries(KEYS, ARRAYS, max_size=5))
def test_named_arrays_come_back_as_they_were(named):
    described, parts = messages.manifest(named)
    found = messages.described(described, "worker 1")
    assert [key for key, _, _ in found] == list(named)
    for (_, dtype, shape), part, array in zip(found, parts, named.values()):
        again = messages.new_array(dtype, shape, "worker 1")
        again[...] = part
        assert (dtype, shape) == (array.dtype, array.shape) and np.array_equal(again, array)


@given(keys=st.lists(KEYS, max_size=8), longest=st.integers(2, 200))
def test_lists_of_keys_are_cut_to_the_length_of_a_message_and_come_back(keys, longest):
    cut = list(messages.encoded_lists(keys, longest))
    assert [key for one in cut for key in messages.keys_of(one, "worker 1")] == keys
    assert all(len(one) <= longest or len(messages.keys_of(one, "worker 1")) == 1 for one in cut)


@given(content=st.binary(max_size=100))
def test_random_bytes_are_no_description(content):
    try:
        assert messages.described(content, "worker 1") == []
    except PeerLost as error:
        assert "worker 1" in str(error)


@given(value=VALUES)
@example([[["param", "x", 0], "<f4", [2 ** 40, 2 ** 40]]])
@example([[["param", "x", 0], "<f4", [-1]]])
@example([[["param", "x", 0], "|O", [1]]])
@example([[["param", "x", 0], "i4,f8", [1]]])
@example([[["param", "x", True], "<f4", [1]]])
@example([[["param", ["x"], 0], "<f4", [1]]])
@example([[["param", "x", 0], "<f4", [1.0]]])
@example([[["param", "x", 0], "<f4", [1] * 65]])
@example([[["rate", "x"], ["<f4"], [1]]])
@example([[["rate", "x"], {}, [1]]])
def test_a_description_of_other_values_is_refused(value):
    try:
        found = messages.described(coded(value), "worker 1")
    except PeerLost:
        return
    assert [[list(key), dtype.str, list(shape)] for key, dtype, shape in found] == value


def test_an_array_that_no_memory_can_hold_is_refused():
    with pytest.raises(PeerLost, match="worker 1 announces .* more than there is memory for"):
        messages.new_array(np.dtype("<f4"), (2 ** 40, 2 ** 40), "worker 1")


def test_a_description_as_deep_as_no_list_is_refused():
    with pytest.raises(PeerLost, match="cannot be read"):
        messages.decode(b"[" * 100000, "worker 1")


@pytest.mark.parametrize("value", ([], [[["rate", "x"], "<f4", [1]]] * 2))
def test_where_one_array_is_expected_others_are_refused(value):
    with pytest.raises(PeerLost, match="worker 1 described . arrays where one is expected"):
        messages.one_of(messages.described(coded(value), "worker 1"), "worker 1")


@pytest.mark.parametrize("kind", (errors.UsageError, errors.EnvironmentProblem, errors.PeerLost, errors.Stalled,
                                  errors.CheckpointDamaged, errors.Diverged, errors.FleetError))
def test_an_error_keeps_its_kind_and_its_words(kind):
    sent = messages.error_message(3, kind("the reason"))
    header = Header.unpack(sent, len(sent), "server 3")
    assert (header.kind, header.sender) == (Kind.ERROR, 3)
    with pytest.raises(kind, match="^server 3 says: the reason$") as raised:
        messages.raise_error(sent[HEADER_BYTES:], "server 3")
    assert type(raised.value) is kind


def test_an_error_of_many_words_is_cut_so_that_it_fits_a_message():
    assert len(messages.error_message(0, FleetError("ä" * 10 ** 6))) < messages.inbox_bytes(0, 0)


@given(value=VALUES)
@example([[], "text"])
@example([True, "text"])
def test_an_error_that_cannot_be_read_is_an_error_too(value):
    with pytest.raises(FleetError):
        messages.raise_error(coded(value), "server 3")


@given(rates=st.integers(0, 5), counts=st.lists(st.integers(-2, 2 ** 40), max_size=4), cut=st.integers(0, 200))
def test_the_prefix_of_a_push_comes_back_or_is_refused(rates, counts, cut):
    inline = np.zeros(messages.prefix_bytes(rates, len(counts)), np.uint8)
    set_rates, set_counts = messages.split_prefix(inline, rates, len(counts))
    set_rates[...], set_counts[...] = np.arange(rates), counts
    part = inline[:max(0, len(inline) - cut)]
    if len(part) < len(inline) or min(counts, default=0) < 0:
        with pytest.raises(PeerLost, match="worker 1"):
            messages.read_prefix(part, rates, len(counts), "worker 1")
    else:
        found = messages.read_prefix(part, rates, len(counts), "worker 1")
        assert found[0].tolist() == list(range(rates)) and found[1].tolist() == counts


def test_what_is_inline_fits_the_inbox(monkeypatch):
    monkeypatch.setattr(protocol, "PIECE", 1000)
    assert messages.is_inline(900, 100) and not messages.is_inline(900, 101)
    assert messages.inbox_bytes(3, 2) == HEADER_BYTES + 64 + 1000
