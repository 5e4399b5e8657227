"""Headers come back as they were, or are refused; nothing else."""

import zlib

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from fleet_mpi.errors import PeerLost
from fleet_mpi.wire import protocol
from fleet_mpi.wire.protocol import HEADER_BYTES, Header, Kind, cuts

NUMBERS = st.integers(-2 ** 63, 2 ** 63 - 1)
SMALL = st.integers(0, 2 ** 32 - 1)
headers = st.builds(Header, st.sampled_from(Kind), SMALL, NUMBERS, NUMBERS, NUMBERS, st.just(0),
                    st.integers(0, 2 ** 63 - 1), SMALL)


def packed(header):
    buffer = np.zeros(HEADER_BYTES, np.uint8)
    header.pack_into(buffer)
    return buffer


def with_right_sum(buffer):
    """The header after its bytes were changed, as if it had been sent so."""
    length = protocol._LAYOUT.size
    buffer[length:length + 4] = np.frombuffer(zlib.crc32(bytes(buffer[:length])).to_bytes(4, "little"), np.uint8)
    return buffer


@given(header=headers, inline=st.integers(0, 1000))
def test_a_header_comes_back_as_it_was(header, inline):
    header = header._replace(inline=inline)
    found = Header.unpack(packed(header), HEADER_BYTES + inline, "worker 1")
    assert found == header and isinstance(found.kind, Kind)


@given(content=st.binary(max_size=200))
@example(b"FLMP" + bytes(60))
def test_other_bytes_are_refused_and_the_sender_is_named(content):
    buffer = np.frombuffer(content, np.uint8)
    with pytest.raises(PeerLost, match="worker 1 sent a"):
        Header.unpack(buffer, len(buffer), "worker 1")


@given(header=headers, bit=st.integers(0, 60 * 8 - 1))
def test_a_bit_that_flips_is_noticed(header, bit):
    buffer = packed(header)
    buffer[bit // 8] ^= 1 << bit % 8
    with pytest.raises(PeerLost, match="damaged header"):
        Header.unpack(buffer, HEADER_BYTES, "worker 1")


@given(content=st.binary(min_size=60, max_size=60), received=st.integers(0, 300))
def test_any_fields_with_the_right_sum_are_a_header_or_refused(content, received):
    buffer = with_right_sum(np.frombuffer(protocol._MAGIC + content, np.uint8).copy())
    try:
        found = Header.unpack(buffer, received, "worker 1")
    except PeerLost:
        return
    assert found.inline == received - HEADER_BYTES and found.body >= 0


@pytest.mark.parametrize("offset, value, words", [
    (4, 9, "speaks version 9 of the protocol, this process 1: install the same fleet_mpi"),
    (6, 99, "message of unknown kind 99")])
def test_another_version_or_kind_is_refused_by_name(offset, value, words):
    buffer = packed(Header(Kind.PUSH, 0))
    buffer[offset] = value
    with pytest.raises(PeerLost, match=words):
        Header.unpack(with_right_sum(buffer), HEADER_BYTES, "worker 1")


@pytest.mark.parametrize("header, received", [
    (Header(Kind.PUSH, 0, inline=5), HEADER_BYTES + 4), (Header(Kind.PUSH, 0, inline=-5), HEADER_BYTES),
    (Header(Kind.PUSH, 0, body=-1), HEADER_BYTES)])
def test_lengths_that_are_not_what_came_are_refused(header, received):
    with pytest.raises(PeerLost, match="worker 1 announced"):
        Header.unpack(packed(header), received, "worker 1")


@given(nbytes=st.integers(0, 5000), largest=st.integers(1, 1000))
def test_cuts_follow_each_other_and_none_is_too_long(nbytes, largest):
    found = cuts(nbytes, largest)
    assert [position for start, stop in found for position in range(start, stop)] == list(range(nbytes))
    assert all(0 < stop - start <= largest for start, stop in found)


def test_no_message_is_longer_than_mpi_counts():
    assert protocol.LARGEST < 2 ** 31 and cuts(3 * 2 ** 30)[-1] == (2 ** 31, 3 * 2 ** 30)
