"""Pipe commands: words, chains, failures, and no shell."""

import gzip
import sys
import types

import pytest

from fleet_mpi.data import pipes
from fleet_mpi.data.pipes import PipeCommand, split_stages
from fleet_mpi.errors import NotBuilt, UsageError


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "numbers.txt"
    path.write_text("1\n2\n3\n")
    return str(path)


@pytest.mark.parametrize("text, stages", [
    ("python reader.py --x 'a b'", [["python", "reader.py", "--x", "a b"]]),
    ("grep -v x|sort | uniq", [["grep", "-v", "x"], ["sort"], ["uniq"]]),
    ("grep '|' | tr \"|\" ' '", [["grep", "|"], ["tr", "|", " "]]),
    (r"grep a\|b", [["grep", "a|b"]]),
    ("awk '{ print $1; }'", [["awk", "{ print $1; }"]]),
])
def test_words_are_split_as_a_shell_splits_them(text, stages):
    assert split_stages(text) == stages


@pytest.mark.parametrize("text", ["", "  ", None, "a || b", "| a", "a |", "a 'b"])
def test_a_command_that_is_none_is_refused(text):
    with pytest.raises(UsageError, match="pipe command"):
        split_stages(text)


@pytest.mark.parametrize("text", ["a > b", "a 2>/dev/null", "a && b", "a; b", "echo $HOME", "a `b`", "a < b"])
def test_what_needs_a_shell_is_refused_instead_of_misunderstood(text):
    with pytest.raises(UsageError, match="needs a shell"):
        split_stages(text)


@pytest.mark.parametrize("command, lines", [
    ("cat", [b"1\n", b"2\n", b"3\n"]),
    ("sort -r", [b"3\n", b"2\n", b"1\n"]),
    ("grep -v 2 | sort -r", [b"3\n", b"1\n"]),
    ("cat | cat", [b"1\n", b"2\n", b"3\n"]),
])
def test_a_file_goes_through_the_chain(file, command, lines):
    assert list(PipeCommand(command).lines(file)) == lines


def test_a_compressed_file_is_unpacked_first(tmp_path):
    with gzip.open(tmp_path / "a.gz", "wb") as packed:
        packed.write(b"x\ny\n")
    assert list(PipeCommand("cat").lines(str(tmp_path / "a.gz"))) == [b"x\n", b"y\n"]


def test_python_means_this_python_with_this_package(tmp_path, file):
    (tmp_path / "reader.py").write_text("import sys, fleet_mpi\nprint(sys.executable, sys.stdin.read().split())\n")
    lines = list(PipeCommand(f"python {tmp_path / 'reader.py'}").lines(file))
    assert lines == [f"{sys.executable} ['1', '2', '3']\n".encode()]


@pytest.mark.parametrize("words, expected", [
    (["python", "reader.py", "-x"], ["-m", "fleet_mpi", "reader.py", "-x"]),
    (["python3", "-u", "reader.py"], ["-u", "-m", "fleet_mpi", "reader.py"]),
    (["python", "-m", "pack.reader"], ["-m", "fleet_mpi", "-m", "pack.reader"]),
    (["python", "-c", "pass"], ["-c", "pass"]),
])
def test_where_paddle_stands_for_this_package_the_reader_gets_the_same_names(monkeypatch, words, expected):
    monkeypatch.setitem(sys.modules, "paddle", types.ModuleType("fleet_mpi.paddle"))
    assert pipes.prepared(words)[0] == [sys.executable, *expected]
    monkeypatch.setitem(sys.modules, "paddle", types.ModuleType("paddle"))
    assert pipes.prepared(words)[0] == [sys.executable, *words[1:]]


def test_this_python_by_its_path_is_this_python(monkeypatch):
    monkeypatch.setitem(sys.modules, "paddle", types.ModuleType("fleet_mpi.paddle"))
    assert pipes.prepared([sys.executable, "a.py"])[0] == [sys.executable, "-m", "fleet_mpi", "a.py"]


def test_other_programs_are_started_as_they_are():
    assert pipes.prepared(["sort", "-r"]) == (["sort", "-r"], None)
    assert pipes.prepared(["/elsewhere/python3", "a.py"]) == (["/elsewhere/python3", "a.py"], None)


@pytest.mark.parametrize("command, stage", [("false", "false"), ("false | cat", "false"), ("cat | false", "false")])
def test_a_failing_process_is_an_error_that_names_command_and_file(file, command, stage):
    with pytest.raises(UsageError, match=f"failed on .*numbers.txt: {stage} ended with exit code 1"):
        list(PipeCommand(command).lines(file))


def test_a_process_ended_by_a_reader_that_saw_enough_is_no_failure(tmp_path):
    path = tmp_path / "long.txt"
    path.write_text("line\n" * 200000)
    assert list(PipeCommand("cat | head -n 2").lines(str(path))) == [b"line\n", b"line\n"]


def test_a_missing_program_or_file_is_named(file):
    with pytest.raises(UsageError, match="no-such-program"):
        list(PipeCommand("cat | no-such-program").lines(file))
    with pytest.raises(UsageError, match="no-such-file"):
        list(PipeCommand("sort").lines("no-such-file"))
    with pytest.raises(UsageError, match="no-such-file"):
        list(PipeCommand("cat").lines("no-such-file"))


def test_leaving_early_ends_the_processes(file, monkeypatch):
    started = []
    popen = pipes.subprocess.Popen
    monkeypatch.setattr(pipes.subprocess, "Popen", lambda *a, **k: started.append(popen(*a, **k)) or started[-1])
    lines = PipeCommand("yes | cat").lines(file)
    assert next(lines) == b"y\n"
    lines.close()
    assert len(started) == 2 and all(process.returncode is not None for process in started)


def test_remote_files_need_a_download_command():
    with pytest.raises(NotBuilt, match="download_cmd"):
        list(PipeCommand("cat").lines("hdfs:/a"))
    assert list(PipeCommand("cat").lines("afs:/a", "echo got")) == [b"got afs:/a\n"]
