"""``python -m fleet_mpi gpu-check``: what it does without a GPU, and with parts that fail, die or hang."""

import json
import os
import stat
import subprocess
import sys

import pytest

from fleet_mpi.launch import gpu_check
from fleet_mpi.launch.gpu_check import findings
from fleet_mpi.launch.gpu_check.findings import FAIL, OK, Finding

FINE = [Finding("one", OK, "as it should be")._asdict()]
WRONG = [Finding("two", FAIL, "differs", "mend it", {"by": 1.5})._asdict()]


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """Let a shell script be every part; the function takes its text."""
    def written(text):
        script = tmp_path / "part"
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(sys, "executable", str(script))
        return str(tmp_path / "report.txt")
    return written


def test_without_a_gpu_it_says_why_and_ends_with_3(tmp_path):
    report = tmp_path / "report.txt"
    ended = subprocess.run([sys.executable, "-m", "fleet_mpi", "gpu-check", "--report", str(report)],
                           env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 3, ended
    assert "fail usable  no GPU can be used: " in ended.stdout and "cure: see docs/gpu.rst" in ended.stdout
    assert list(findings.read(str(report))["parts"]) == ["device"], "nothing else was tried"


def test_all_parts_run_and_the_report_has_lines_and_json(parts, capsys):
    report = parts(f"echo noise; echo '{json.dumps(FINE)}'")
    assert gpu_check.main(["--report", report]) == 0
    assert capsys.readouterr().out.count("ok   one  as it should be") == len(gpu_check.PARTS)
    with open(report) as file:
        assert "speed:\n  ok   one  as it should be\n" in file.read()
    assert findings.read(report)["parts"]["ops"] == FINE


def test_a_check_that_fails_ends_with_1_and_is_told_with_its_numbers(parts, capsys):
    report = parts(f"""[ "$3" = ops ] && echo '{json.dumps(WRONG)}' || echo '{json.dumps(FINE)}'""")
    assert gpu_check.main(["--report", report]) == 1
    assert "ops:\n  fail two  differs\n            cure: mend it\n" in capsys.readouterr().out
    told = findings.read(report)["parts"]
    assert told["ops"] == WRONG and told["speed"] == FINE, "the parts after it run too"


def test_a_part_that_dies_is_a_finding_with_its_last_words(parts):
    report = parts(f"""[ "$3" = memory ] && {{ echo CUDA is ill >&2; exit 9; }}; echo '{json.dumps(FINE)}'""")
    assert gpu_check.main(["--report", report]) == 1
    died, = findings.read(report)["parts"]["memory"]
    assert died["state"] == FAIL and died["text"] == "the process ended with code 9: CUDA is ill"


def test_a_part_that_hangs_is_ended(parts):
    report = parts(f"""[ "$3" = kernels ] && exec sleep 60; echo '{json.dumps(FINE)}'""")
    assert gpu_check.main(["--report", report, "--deadline", "1"]) == 1
    hung, = findings.read(report)["parts"]["kernels"]
    assert hung["text"] == "did not end within 1 s"


def test_the_words_of_the_command_line_reach_the_parts(parts):
    report = parts(f"""[ "$3 $4 $5" = "$3 1 quick" ] && echo '{json.dumps(FINE)}'""")
    assert gpu_check.main(["--report", report, "--device", "1", "--quick"]) == 0
