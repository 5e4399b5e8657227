"""fleet_mpi/data/frames.py."""

import io

from fleet_mpi.data.frames import read_frame, write_frame


def test_messages_come_back_one_by_one_and_a_cut_one_is_the_end():
    pipe = io.BytesIO()
    for data in (b"abc", b"", b"x" * 100000):
        write_frame(pipe, data)
    whole = pipe.getvalue()
    pipe.seek(0)
    assert [len(read_frame(pipe)) for _ in range(3)] == [3, 0, 100000] and read_frame(pipe) is None
    cut = io.BytesIO(whole[:15])
    assert read_frame(cut) == b"abc" and read_frame(cut) is None
