"""The benchmarks run and compare equal arithmetic. Quick sizes: for breakage, not for numbers."""

import importlib.util
import json

import pytest

from benchmarks import engine, floors, gpu_step, inputs, op_times, ours, placing
from benchmarks.rounds import Outcome, different_losses
from fleet_mpi.program.engine import places
from tests.unit.program.ops.checking import StandInPlace

pytestmark = pytest.mark.slow

HAS_PEER = importlib.util.find_spec("torch") is not None


def test_the_table_has_a_row_for_every_case_and_a_line_of_json(capfd):
    assert engine.main(["--quick", "--json", "--rounds", "1", "--peer", "torch"]) == 0
    said = capfd.readouterr().out
    told = json.loads(said.splitlines()[-1])
    assert [row["case"] for row in told["results"]] == ["fit_a_line", "wide_and_deep", "resnet"]
    assert all(min(row["ours"]["seconds"]) > 0 and row["ours"]["peak_bytes"] > 0 for row in told["results"])
    assert all(("torch_peer" in row) == HAS_PEER for row in told["results"])
    assert ("torch is not installed beside this Python" in said) != HAS_PEER
    assert "do not compute the same" not in said
    assert "\nimport + first step of fit_a_line" in said


def test_an_unknown_case_is_refused(capsys):
    with pytest.raises(SystemExit):
        engine.main(["--only", "fit_a_circle"])
    assert "no case is called fit_a_circle" in capsys.readouterr().err


@pytest.mark.parametrize("case, options", [("fit_a_line", {"batch": 20}),
                                           ("wide_and_deep", {"batch": 16, "table": (101, 10)})])
def test_the_engine_trains_as_its_floor_does(case, options):
    mine, floor = getattr(ours, case)(**options), getattr(floors, case)(**options)
    for _ in range(12):
        assert mine() == pytest.approx(floor(), rel=1e-4)


def test_contenders_that_compute_something_else_are_found_out():
    same = {"ours": Outcome([1.0], 2.0, 0, 0), "floors": Outcome([1.0], None, 0, 0)}
    assert different_losses(same) == ""
    assert "first losses" in different_losses({**same, "torch_peer": Outcome([1.0], 2.1, 0, 0)})


def test_the_convolutions_of_resnet_50_are_those_of_the_model():
    made = list(inputs.convolutions(50, 224))
    assert len(made) == 53
    # 4.09 G multiply-adds forward, of which the last layer has 0.2 M.
    work = sum(c.outputs * c.inputs * c.kernel ** 2 * c.out_size ** 2 for c in made)
    assert work == pytest.approx(4.09e9, rel=0.005)


def test_the_time_of_every_op_is_shown(capsys):
    assert op_times.main(["fit_a_line", "--steps", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("sgd") for line in lines)
    assert lines[-1].startswith("a step")


def test_placing_is_timed_for_every_method(capsys):
    assert placing.main(["--variables", "20", "--repeats", "1"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]] == ["RoundRobin", "HashName",
                                                                                      "Balanced"]


def test_a_step_on_a_gpu_is_measured_and_without_one_the_reason_is_said(capsys, monkeypatch):
    monkeypatch.setattr(gpu_step, "why_no_gpu", lambda: "no GPU on this machine")
    assert gpu_step.main([]) == 3
    assert capsys.readouterr().err == "gpu_step: no GPU on this machine\n"
    monkeypatch.setattr(gpu_step, "why_no_gpu", lambda: None)
    monkeypatch.setattr(gpu_step.paddle, "set_device", lambda name: monkeypatch.setattr(places, "_chosen",
                                                                                        StandInPlace()))
    assert gpu_step.main(["--quick", "--json"]) == 0
    title, mine, *others, line = capsys.readouterr().out.splitlines()
    assert title == "ResNet-18, batch 2, 32x32" and "ms a step" in mine and len(others) == 2
    assert all(one > 0 for one in json.loads(line)["milliseconds"]["fleet_mpi, float32"])
