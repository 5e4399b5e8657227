"""What a process sees: of made-up files, and once of this machine."""

import os
import sys

import pytest

from fleet_mpi.launch import doctor_facts


@pytest.mark.parametrize("text, cores", (("max 100000\n", None), ("150000 100000\n", 1.5), ("", None)))
def test_a_containers_limit_is_read_as_cores(tmp_path, text, cores):
    (tmp_path / "cpu.max").write_text(text)
    assert doctor_facts.quota(tmp_path / "cpu.max") == cores
    assert doctor_facts.quota(tmp_path / "nothing") is None


def test_the_kind_of_a_file_system_is_that_of_the_nearest_mount(tmp_path):
    mounts = tmp_path / "mounts"
    mounts.write_text("/dev/a / ext4 rw 0 0\nserver:/x /home\\040dirs nfs4 rw 0 0\nserver:/y /home lustre rw 0 0\n"
                      "tmpfs / overlay rw 0 0\n")
    kinds = [doctor_facts.kind_of_file_system(path, mounts)
             for path in ("/", "/home", "/home/me", "/homes", "/home dirs/x")]
    assert kinds == ["overlay", "lustre", "lustre", "overlay", "nfs4"]
    assert doctor_facts.kind_of_file_system("/", tmp_path / "nothing") == ""


def test_segments_that_nobody_holds_are_left_over(tmp_path):
    for name in ("mpich_shm_1", "sm_segment.vm.0.1.0", "my_own_data"):
        (tmp_path / name).write_bytes(b"x" * 5000)
    assert len(doctor_facts.left_over(str(tmp_path))) == 2
    seen = doctor_facts.shared_memory(str(tmp_path))
    assert seen["left_over"] == 2 and seen["left_over_bytes"] >= 10000 and seen["shm_free"] > 0


def test_a_segment_in_a_processs_memory_is_not_left_over(tmp_path):
    import mmap
    path = tmp_path / "mpich_shm_1"
    path.write_bytes(b"x" * 5000)
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 5000):
        assert doctor_facts.left_over(str(tmp_path)) == []


def test_without_shared_memory_there_is_a_problem(tmp_path):
    assert "No such file" in doctor_facts.shared_memory(str(tmp_path / "nowhere"))["shm_problem"]


def test_renaming_works_here_and_leaves_nothing_behind(tmp_path):
    seen = doctor_facts.rename(str(tmp_path))
    assert (seen["rename_problem"], seen["is_torn"], seen["folder"]) == ("", False, str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_not_there_is_a_problem_of_saving(tmp_path):
    seen = doctor_facts.rename(str(tmp_path / "nowhere"))
    assert "No such file" in seen["rename_problem"] and not seen["is_torn"]


def test_a_reader_that_sees_half_a_file_is_told(tmp_path, monkeypatch):
    from contextlib import contextmanager

    @contextmanager
    def in_place(path):
        with open(path, "wb") as stream:
            yield stream
        with open(path, "wb") as stream:
            stream.write(b"half")
    monkeypatch.setattr(doctor_facts, "replacing", in_place)
    seen = doctor_facts.rename(str(tmp_path))
    assert seen["is_torn"] and "neither the old file nor the new" in seen["rename_problem"]


def test_every_step_sees_something_here(monkeypatch):
    seen = {}
    for _, look in doctor_facts.steps({"PATH": "", "OMP_NUM_THREADS": "3"}, alone=True):
        seen.update(look())
    assert seen["cores"] == sorted(os.sched_getaffinity(0)) and seen["limits"] == {"OMP_NUM_THREADS": "3"}
    assert seen["versions"]["Python"] == ".".join(map(str, sys.version_info[:3]))
    assert os.path.isdir(seen["cache"]) and seen["cache_problem"] == ""
    assert seen["slurm"] == {} and seen["typed"] == ""


def test_the_first_rank_asks_srun_which_plugins_load_and_others_do_not(monkeypatch, tmp_path):
    (tmp_path / "srun").write_text("""#!/bin/sh
        case $1 in
        --mpi=list) printf 'MPI plugin types are...\\n\\tpmix\\n\\tnone\\n\\tpmi2\\nspecific versions: pmix_v4\\n';;
        --mpi=pmix) printf 'srun: no binding\\nsrun: error:  no PMIx\\nsrun: error: Invalid MPI type\\n' >&2; exit 1;;
        *) echo 'srun: error: no such partition' >&2; exit 1;;
        esac""")
    (tmp_path / "srun").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    seen = doctor_facts.slurm({"SLURM_PROCID": "0", "SLURM_JOB_ID": "7"})
    assert seen == {"slurm": {"SLURM_JOB_ID": "7"}, "has_srun": True, "plugins": ["pmix", "none", "pmi2"],
                    "broken": {"pmix": "no PMIx"}, "srun_problem": ""}
    assert not doctor_facts.slurm({"SLURM_PROCID": "1"})["has_srun"]


@pytest.mark.parametrize("program, told", (
    ("print('yes')", ("yes", "")),
    ("print('line'); raise SystemExit('the cause')", ("", "the cause")),
    ("raise SystemExit(4)", ("", "exit code 4")),
))
def test_a_command_is_asked(program, told):
    assert doctor_facts.ask([sys.executable, "-c", program]) == told


def test_a_command_that_does_not_answer_is_given_up(monkeypatch):
    monkeypatch.setattr(doctor_facts, "ASKING_S", 0.2)
    assert "timed out" in doctor_facts.ask([sys.executable, "-c", "import time; time.sleep(60)"])[1]
    assert "No such file" in doctor_facts.ask(["/nowhere/srun"])[1]
