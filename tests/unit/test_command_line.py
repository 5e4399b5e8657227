"""All commands of the package: their version, misspelt flags, and code 2 for misuse."""

import importlib
import json
import sys

import pytest

from fleet_mpi import __version__
from fleet_mpi.command_line import CommandLine, seconds, whole
from fleet_mpi.launch import main as launch, plan_command

EXAMPLES = ("fit_a_line", "recognize_digits", "word2vec", "wide_and_deep", "resnet")


def commands():
    """{what a user writes: what runs with the words after it}."""
    def of(module, **first):
        return lambda words: importlib.import_module(module).main([*first.get("words", ()), *words])
    made = {"fleetrun": launch, "python -m fleet_mpi": of("fleet_mpi.__main__")}
    made.update({f"python -m fleet_mpi {name}": of("fleet_mpi.__main__", words=[name])
                 for name in ("plan", "doctor", "gpu-check", "names", "export")})
    made.update({f"python -m fleet_mpi.examples.{name}": of(f"fleet_mpi.examples.{name}") for name in EXAMPLES})
    return made


def code_of(run, words):
    """The exit code of a command."""
    try:
        return run(words)
    except SystemExit as leaving:
        return leaving.code


@pytest.mark.parametrize("command", commands())
def test_every_command_tells_its_version(command, capsys):
    assert code_of(commands()[command], ["--version"]) == 0
    assert capsys.readouterr().out == f"fleet_mpi {__version__}\n"


@pytest.mark.parametrize("command, words, said", (
    ("fleetrun", "--sever_num 1 --worker_num 2 train.py", "unknown flag --sever_num; did you mean '--server_num'"),
    ("fleetrun", "-np 2 --epochs 3 train.py", "(the script's own flags come after the script)"),
    ("fleetrun", "-np 0 train.py", "expected 1 or more, got 0"),
    ("fleetrun", "-np two train.py", "expected a whole number, got 'two'"),
    ("fleetrun", "-np 2", "no script to run"),
    ("fleetrun", "--xpus 0 train.py", "there are CPUs and CUDA devices only"),
    ("python -m fleet_mpi plan", "--severs 3 w:2x2", "unknown flag --severs; did you mean '--servers'"),
    ("python -m fleet_mpi plan", "--servers 0 w:2x2", "servers must be a whole number of at least 1, got 0"),
    ("python -m fleet_mpi plan", "--servers 2 w", "expected a variable as NAME:SHAPE"),
    ("python -m fleet_mpi plan", "--servers 2 --method Best w:2x2", "Best"),
    ("python -m fleet_mpi plan", "--servers 2 --min-block-size 0 w:2x2", "min"),
    ("python -m fleet_mpi doctor", "--deadlin 3 --x", "unknown flag --x"),
    ("python -m fleet_mpi doctor", "--deadline 0", "expected seconds, more than 0, got '0'"),
    ("python -m fleet_mpi gpu-check", "--reprot x", "unknown flag --reprot; did you mean '--report'"),
    ("python -m fleet_mpi export", "model --too onnx", "unknown flag --too; did you mean '--to'"),
    ("python -m fleet_mpi export", "model --to tflite", "invalid choice: 'tflite'"),
    ("python -m fleet_mpi names", "instal", "invalid choice: 'instal'"),
    ("python -m fleet_mpi.examples.fit_a_line", "--pases 3", "unknown flag --pases; did you mean '--passes'"),
    ("python -m fleet_mpi.examples.resnet", "--batch-size 0", "expected 1 or more, got 0"),
    ("python -m fleet_mpi.examples.word2vec", "--mode nothing", "invalid choice: 'nothing'")))
def test_misuse_is_a_sentence_and_code_2(command, words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert code_of(commands()[command], words.split()) == 2
    assert said in capsys.readouterr().err


def test_the_beginning_of_a_flag_and_what_comes_after_two_dashes_are_no_mistakes():
    parser = CommandLine()
    parser.add_argument("--number", type=whole)
    parser.add_argument("words", nargs="*")
    assert vars(parser.parse_args(["--num", "3", "--", "--other"])) == {"number": 3, "words": ["--other"]}


def test_the_words_are_those_of_the_process_where_none_are_given(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["prog", "--time", "2.5"])
    parser = CommandLine()
    parser.add_argument("--time", type=seconds)
    assert parser.parse_args().time == 2.5


def test_a_plan_is_told_to_programs_too(capsys):
    assert plan_command.main(["--servers", "2", "--json", "w:1000x20", "b:20"]) == 0
    out = capsys.readouterr().out
    told = json.loads(out)
    assert out.count("\n") == 1 and sum(shard["bytes"] for shard in told["shards"]) == told["size_bytes"] == 80080
    assert {shard["shard"] for shard in told["shards"]} == {"w.block0", "w.block1", "b"}
    assert [load["server"] for load in told["servers"]] == [0, 1] and told["bytes_per_step"] == 2 * 80080
