"""Vocabularies: numbering, bytes and text, made-up words."""

from fleet_mpi.data.sets.words import made_up_words, vocabulary_of


def test_words_are_numbered_by_frequency_then_spelling_with_unknown_last():
    words = vocabulary_of({"b": 3, "a": 3, "c": 9, "rare": 1, "<unk>": 50}, 1)
    assert dict(words) == {"c": 0, "a": 1, "b": 2, "<unk>": 3}


def test_lookups_by_bytes_and_by_text_agree():
    words = vocabulary_of({"café": 3}, 0)
    assert words["café"] == words["café".encode()] == words.get("café".encode()) == 0
    assert b"<unk>" in words and b"none" not in words and words.get(b"none", 7) == 7


def test_nothing_seen_leaves_the_unknown_word():
    assert dict(vocabulary_of({}, 0)) == {"<unk>": 0}


def test_made_up_words_are_different_and_repeatable():
    words = made_up_words(300, 1)
    assert len(set(words)) == 300 and words == made_up_words(300, 1) != made_up_words(300, 2)
