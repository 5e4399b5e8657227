"""fleet_mpi/data/feed_desc.py."""

import pytest

from fleet_mpi.data.feed_desc import DataFeedDesc
from fleet_mpi.errors import StorageProblem, UsageError

TEXT = '''name: "MultiSlotDataFeed"
# two slots
batch_size: 2
multi_slot_desc {
  slots { name: "words" type: "uint64" is_dense: false is_used: false }
  slots {
    name: "label"
    type: "uint64"
  }
}
'''
WRITTEN = '''name: "MultiSlotDataFeed"
batch_size: 128
multi_slot_desc {
  slots {
    name: "words"
    type: "uint64"
    is_dense: false
    is_used: true
  }
  slots {
    name: "label"
    type: "uint64"
    is_dense: true
  }
}
pipe_command: "cat"
'''


@pytest.fixture
def file(tmp_path):
    (tmp_path / "data.proto").write_text(TEXT)
    return tmp_path / "data.proto"


def test_a_description_is_read_changed_and_written(file):
    desc = DataFeedDesc(str(file))
    desc.set_batch_size(128)
    desc.set_dense_slots(["label"])
    desc.set_use_slots(["words"])
    assert desc.desc() == WRITTEN
    file.write_text(WRITTEN)
    assert DataFeedDesc(file).desc() == WRITTEN


def test_an_unknown_slot_or_file_is_named(file):
    with pytest.raises(UsageError, match="'word'.*'words'"):
        DataFeedDesc(file).set_use_slots(["word"])
    with pytest.raises(StorageProblem, match="nowhere"):
        DataFeedDesc("nowhere")


@pytest.mark.parametrize("text", ["name", "name:", "slots {", "}", "name: }", "a { b: 1 ", "1: 2", "name: x", "?"])
def test_what_is_no_description_is_refused_with_its_line(tmp_path, text):
    (tmp_path / "a").write_text("batch_size: 1\n" + text)
    with pytest.raises(UsageError, match="line 2"):
        DataFeedDesc(tmp_path / "a")
