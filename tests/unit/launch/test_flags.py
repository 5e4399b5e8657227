"""The table of flags: every flag of the original is known, shown and either wired, taken or refused."""

import pytest

from fleet_mpi.errors import NotBuilt
from fleet_mpi.launch import flags

# Those of the launchers of 1.6 to 2.6.
ORIGINAL = """cluster_node_ips node_ip start_port print_config endpoints worker_num server_num log_dir use_paddlecloud
started_port selected_gpus log_level nproc_per_node gpus ips servers workers heter_workers heter_worker_num http_port
master rank log_overwrite sort_ip enable_gpu_log nnodes run_mode job_id devices xpus npus host auto_parallel_config
auto_tuner_json legacy trainers trainer_num gloo_port with_gloo max_restart elastic_level elastic_timeout""".split()


def test_every_flag_of_the_original_is_in_the_table_and_in_the_help(capsys):
    known = {name for flag in flags.TABLE for name in flag.names}
    assert not {f"--{name}" for name in ORIGINAL} - known
    with pytest.raises(SystemExit):
        flags.read(["--help"])
    shown = capsys.readouterr().out
    assert not [name for name in known if name not in shown]


@pytest.mark.parametrize("words, said", (
    ("--heter_workers=a:1", "--heter_workers a:1: .*not built: give all workers"),
    ("--heter_worker_num 2", "--heter_worker_num 2: workers of another kind"),
    ("--xpus=0", "CPUs and CUDA devices only"),
    ("--npus=0,1", "--npus 0,1: there are CPUs and CUDA devices only"),
    ("--elastic_level 1", "the number of ranks is fixed"),
    ("--auto_tuner_json x.json", "automatic parallelism"),
    ("--use_paddlecloud", "MPI operator"),
))
def test_what_is_not_built_is_refused_with_a_sentence(words, said):
    with pytest.raises(NotBuilt, match=said):
        flags.read(words.split())


@pytest.mark.parametrize("words",
                         ("--heter_workers=", "--heter_worker_num=0", "--elastic_level -1", "--rank -1", "--rank 0"))
def test_a_refused_flag_may_say_that_it_is_not_meant(words):
    flags.read(words.split())


@pytest.mark.parametrize("words, said", (
    ("-np 0", "expected 1 or more, got 0"),
    ("-np two", "two"),
    ("--print_config maybe", "expected True or False, got 'maybe'"),
    ("--echo some", "first"),
    ("--no_such_option 1", "--no_such_option"),
))
def test_a_wrong_option_is_shown_with_the_usage(words, said, capsys):
    with pytest.raises(SystemExit) as ended:
        flags.read(words.split())
    shown = capsys.readouterr()
    assert ended.value.code == 2 and said in shown.err and "fleetrun -np N" in shown.err and shown.out == ""


def test_words_are_split_before_the_script_and_known_by_their_first_name():
    ours, script = flags.split("--dry-run -np 2 --selected_gpus=0 --use_paddlecloud train.py --np 3".split())
    assert script == ["train.py", "--np", "3"]
    assert flags.given(ours) == ("--dry-run", "--np", "--gpus", "--use_paddlecloud")
