"""What the launcher shows at the start: the block, the table and the lines of the guide, to the column."""

import re
import textwrap
from pathlib import Path

import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.launch import announce
from fleet_mpi.launch.command import told
from fleet_mpi.launch.job import Allocation, parse

NO_GPU, TWO_GPUS = Allocation(2), Allocation(2, ("0", "1"))


def shown(words, around=NO_GPU):
    """All that is shown for these words, times and places left out."""
    job = parse([*words.split(), "train.py", "--epochs", "3"], around)
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} announce.py:\d+\]", "TIME]",
                  announce.opening(job, around, told(job)))


def test_the_output_of_the_guide_comes_line_by_line():
    assert shown("--gpus=0,1 --start_port=17901", TWO_GPUS).replace("start_port: 17901\n", "") == textwrap.dedent("""\
        -----------  Configuration Arguments -----------
        gpus: 0,1
        heter_worker_num: None
        heter_workers:
        http_port: None
        ips: 127.0.0.1
        log_dir: log
        nproc_per_node: None
        server_num: None
        servers:
        training_script: train.py
        training_script_args: ['--epochs', '3']
        worker_num: None
        workers:
        ------------------------------------------------
        WARNING TIME] Not found distinct arguments and compiled with cuda. Default use collective mode
        launch train in GPU mode
        INFO TIME] Local start 2 processes. First process distributed environment info (Only For Debug):{}
            +=======================================================================================+
            |                        Distributed Envs                      Value                    |
            +---------------------------------------------------------------------------------------+
            |                 PADDLE_CURRENT_ENDPOINT                 127.0.0.1:17901               |
            |                     PADDLE_TRAINERS_NUM                        2                      |
            |                PADDLE_TRAINER_ENDPOINTS         127.0.0.1:17901,127.0.0.1:17902       |
            |                     FLAGS_selected_gpus                        0                      |
            |                       PADDLE_TRAINER_ID                        0                      |
            +=======================================================================================+

        """).format(" ")


def test_the_table_of_the_guide_itself_is_made_again():
    seeds = list(Path(__file__).parents[4].glob("shared/seeds/003*.txt"))
    if not seeds:
        pytest.skip("the guides are not here")
    guide = seeds[0].read_text()
    table = re.findall(r"^   (    [+|].*[+|])$", guide, re.M)
    rows = dict(re.match(r" *\| *(\S+) +(\S+) *\|", row).groups() for row in table[3:-1])
    assert announce.table(rows).splitlines()[:-1] == table


def test_without_a_gpu_that_is_said():
    text = shown("--gpus=0,1")
    assert "and no GPU here: ranks run on the CPU. Default use collective mode\n" in text
    assert "launch train in CPU mode\n" in text and "|                     FLAGS_selected_gpus" in text


def test_hosts_are_a_distinct_argument():
    text = shown("--ips a,b --nproc_per_node 1")
    assert "Not found distinct" not in text and "Run collective mode" in text and "\nips: a,b\n" in text


def test_servers_and_workers_have_a_table_each():
    text = shown("--server_num 1 --worker_num 2")
    assert "Run parameter-server mode. pserver arguments:['--server_num', '--worker_num']" in text
    assert text.index("Local server start 1 processes.") < text.index("PSERVER") < text.index("Local worker start 2 "
                                                                                              "processes.") \
        < text.index("TRAINER ") and "launch train" not in text


@pytest.mark.parametrize("words, there, gone", (
    ("--gpus 0 --log_level WARNING", "Not found distinct", "Local start"),
    ("--gpus 0 --log_level 40", "launch train", "Not found distinct"),
    ("--gpus 0 --log_level debug", "Local start", "DEBUG"),
))
def test_a_level_hides_what_is_less_severe(words, there, gone):
    assert there in shown(words) and gone not in shown(words)


def test_an_unknown_level_is_refused():
    with pytest.raises(UsageError, match="--log_level loud: expected DEBUG"):
        shown("--gpus 0 --log_level loud")


@pytest.mark.parametrize("words", ("-np 2", "--gpus 0 --print_config False"))
def test_nothing_may_be_shown(words):
    assert shown(words) == ""


def test_long_values_show_their_end_and_long_names_widen_the_table():
    lines = announce.table({"N" * 50: "a" * 4 + "b" * 41}).splitlines()
    assert lines[3] == f"    |{'N' * 50}  ... {'b' * 41}|" and {len(row) for row in lines[:5]} == {4 + 2 + 50 + 2 + 45}
    assert "a" * 44 in announce.table({"N": "a" * 44})


def test_flags_without_effect_are_spoken_of_once():
    job = parse("--gpus 0 --master 10.0.0.1:99 --http_port= --rank 0 train.py".split())
    notes = announce.idle(job)
    assert [note.split()[0] for note in notes] == ["--master", "--rank"]
    assert notes[0] == "--master has no effect: ranks of MPI find each other"


def test_a_module_is_shown_as_the_script():
    job = parse("--gpus 0 -m pkg.train x".split())
    assert "training_script: -m pkg.train\ntraining_script_args: ['x']\n" in announce.configuration(job)
