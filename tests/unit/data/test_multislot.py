"""The writing side of the multislot format."""

import io

import numpy as np
import pytest

from fleet_mpi.data.multislot import DataGenerator, MultiSlotDataGenerator, MultiSlotStringDataGenerator
from fleet_mpi.errors import UsageError


class Words(MultiSlotDataGenerator):
    def generate_sample(self, line):
        def samples():
            if line.strip():
                numbers = [int(word) for word in line.split()]
                yield [("words", numbers), ("weight", [0.5, 2]), ("label", [numbers[0] % 2])]
            yield None

        return samples


def output_of(generator, text, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    generator.run_from_stdin()
    return capsys.readouterr().out


def test_lines_become_counts_and_values_and_none_is_skipped(monkeypatch, capsys):
    assert output_of(Words(), "3 4 5\n\n8\n", monkeypatch, capsys) == "3 3 4 5 2 0.5 2 1 1\n1 8 2 0.5 2 1 0\n"


def test_the_type_of_a_slot_becomes_float_with_its_first_float():
    generator = Words()
    assert generator._gen_str([("a", [1]), ("b", [1, np.int64(2)])]) == "1 1 2 1 2\n"
    assert generator._proto_info == [("a", "uint64"), ("b", "uint64")]
    generator._gen_str([("a", [1]), ("b", [0.5, 1])])
    assert generator._proto_info == [("a", "uint64"), ("b", "float")]


def test_generate_batch_sees_batches_of_the_size_set(monkeypatch, capsys):
    sizes = []

    class Padded(Words):
        def generate_batch(self, samples):
            sizes.append(len(samples))
            longest = max(len(sample[0][1]) for sample in samples)

            def padded():
                for (name, words), *rest in samples:
                    yield [(name, words + [0] * (longest - len(words))), *rest]

            return padded

    generator = Padded()
    generator.set_batch(2)
    text = output_of(generator, "1 2\n3\n5\n", monkeypatch, capsys)
    assert sizes == [2, 1]
    assert [line.split()[0] for line in text.splitlines()] == ["2", "2", "1"]


def test_run_from_memory_asks_once_without_a_line(capsys):
    class Fixed(MultiSlotDataGenerator):
        def generate_sample(self, line):
            assert line is None
            return lambda: iter([[("a", [1, 2])], [("a", [3])]])

    Fixed().run_from_memory()
    assert capsys.readouterr().out == "2 1 2\n1 3\n"


def test_the_string_generator_writes_texts_as_they_are():
    assert MultiSlotStringDataGenerator()._gen_str([("a", ["1926", "08"]), ("b", ["1"])]) == "2 1926 08 1 1\n"


def test_samples_and_values_may_come_as_zip_objects_and_generators():
    names, values = ["words", "label"], [[19, 26], [1]]
    for sample in (zip(names, values), ((name, map(int, some)) for name, some in zip(names, values))):
        assert MultiSlotDataGenerator()._gen_str(sample) == "2 19 26 1 1\n"
    texts = zip(names, (map(str, some) for some in values))
    assert MultiSlotStringDataGenerator()._gen_str(texts) == "2 19 26 1 1\n"


@pytest.mark.parametrize("sample, said", [
    ({"a": 1}, "list or tuple"),
    ([("a", [])], "at least one value"),
    ([("a", 3)], "at least one value"),
    ([("a", ["x"])], "'x'"),
    ([(5, [1])], "name"),
])
def test_a_sample_that_cannot_be_written_is_refused(sample, said):
    with pytest.raises(UsageError, match=said):
        MultiSlotDataGenerator()._gen_str(sample)


def test_samples_with_other_slots_than_the_first_are_refused():
    generator = MultiSlotDataGenerator()
    generator._gen_str([("a", [1]), ("b", [1])])
    with pytest.raises(UsageError, match=r"\['a', 'b'\]"):
        generator._gen_str([("b", [1]), ("a", [1])])


def test_the_base_class_says_what_to_override():
    with pytest.raises(NotImplementedError, match="generate_sample"):
        DataGenerator().generate_sample("x")
    with pytest.raises(UsageError, match="set_batch"):
        DataGenerator().set_batch(0)
