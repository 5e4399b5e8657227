"""The two commands for people with GPUs: ``doctor`` and ``gpu-check``."""

import json

import pytest

from fleet_mpi.errors import EnvironmentProblem
from fleet_mpi.launch.gpu_check import PARTS
from fleet_mpi.launch.gpu_check.findings import read
from tests.gpu.device_jobs import environment, run_on_devices
from tests.mpi.jobs import run_job

DOCTOR = ["-m", "fleet_mpi", "doctor", "--json", "--deadline", "60"]
GPU_CHECK = ["-m", "fleet_mpi", "gpu-check", "--quick", "--report"]


def checks_of(text):
    """{check: (state, text)} of the doctor's report."""
    return {check["name"]: (check["state"], check["text"]) for check in json.loads(text)["checks"]}


def test_the_doctor_alone_sees_the_devices(emulation, tmp_path):
    ended = run_job(None, DOCTOR, via="command", cwd=tmp_path, env=environment(2), timeout=120)
    assert ended.code == 0, ended.story()
    checks = checks_of(ended.out)
    assert checks["GPU"] == ("ok", checks["GPU"][1]) and checks["GPU"][1].startswith("2 on "), checks
    assert checks["sums on GPUs"][0] == "ok" and checks["sums on GPUs"][1].startswith("by NCCL"), checks


@pytest.mark.parametrize("aware, state, said", (("auto", "warn", "no ("), ("yes", "ok", "yes (FLEET_MPI_CUDA_AWARE")))
def test_the_doctor_of_ranks_says_the_way_that_sums_take(emulation, tmp_path, aware, state, said):
    ended = run_on_devices(2, DOCTOR, FLEET_MPI_CUDA_AWARE=aware)
    assert ended.code == 0, ended.story()
    checks = checks_of(ended.ranks[0].out)
    assert checks["CUDA-aware MPI"][0] == state and checks["CUDA-aware MPI"][1].startswith(said), checks
    assert checks["sums on GPUs"][1].startswith("by NCCL, from device to device"), checks


def test_the_doctor_says_that_ranks_share_a_device(emulation, tmp_path):
    ended = run_job(2, DOCTOR, env=environment(1), timeout=120)
    checks = checks_of(ended.ranks[0].out)
    assert ended.code == 0 and checks["GPU"][0] == "warn" and "2 ranks on" in checks["GPU"][1], ended.story()
    assert checks["sums on GPUs"][0] == "warn" and "ranks 0 and 1 use one device" in checks["sums on GPUs"][1], checks


@pytest.mark.parametrize("asynchronous", (False, True), ids=("immediate", "asynchronous"))
def test_gpu_check_finds_nothing_wrong(tmp_path, asynchronous):
    report = tmp_path / "report.txt"
    ended = run_job(None, [*GPU_CHECK, report], via="command", cwd=tmp_path, env=environment(1, asynchronous),
                    timeout=600)
    assert ended.code == 0, ended.story()
    parts = read(report)["parts"]
    assert tuple(parts) == PARTS and all(one["state"] == "ok" for found in parts.values() for one in found), parts
    facts = {one["name"]: one["text"] for one in parts["device"]}
    assert not any(text.startswith("none (") for text in facts.values()), facts


def test_gpu_check_refuses_a_device_that_is_not_there(tmp_path):
    ended = run_job(None, [*GPU_CHECK, tmp_path / "report.txt", "--device", "77"], via="command", cwd=tmp_path,
                    env=environment(1), timeout=120)
    assert ended.code == EnvironmentProblem.exit_code and "CUDAPlace(77): expected a GPU from 0 to" in ended.out, \
        ended.story()
