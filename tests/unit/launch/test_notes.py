"""Notes of the ranks: the first one counts, and a folder that is not there stops nobody."""

import pytest

from fleet_mpi.launch.notes import FIRST, first_code, leave_note, read_note


def test_the_first_note_counts(tmp_path):
    assert first_code(tmp_path) is None
    assert leave_note(tmp_path, FIRST, "7", "1") and not leave_note(tmp_path, FIRST, "3", "0")
    assert first_code(tmp_path) == 7


@pytest.mark.parametrize("folder", (None, "", "/nowhere/at/all"))
def test_without_a_folder_every_rank_is_the_first_it_knows_of(folder):
    assert leave_note(folder, FIRST, "3", "0") and leave_note(folder, FIRST, "3", "1")
    assert read_note(folder, FIRST) is None and first_code(folder) is None
