"""PyTorch over MPI: bits of one process, stock DistributedDataParallel, servers, examples, and the pages' scripts."""

import importlib.util
import json
import re
import subprocess
import sys
import textwrap

import pytest

from tests.mpi.jobs import ROOT, clean_environment, run_job

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None,
                                 reason="PyTorch is not installed: pip install torch==2.13.0")
QUICK = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}

EQUAL = """
    import torch
    from torch.utils.data import DataLoader

    import fleet_mpi.torch as fleet
    from fleet_mpi.examples.torch import resnet18
    from tests.unit.torch import trainings


    class Numbers(torch.utils.data.Dataset):
        def __len__(self):
            return 12

        def __getitem__(self, number):
            return float(number)


    def main():
        job = fleet.join(servers=0)
        print("exact", trainings.digest(trainings.train_parallel(job)))
        fast = trainings.train_parallel(job, "fast")
        print("fast", all(torch.allclose(one, other, rtol=1e-3, atol=1e-5) for one, other in zip(
            fast.parameters(), trainings.by_one_process(job.workers).parameters())))
        print("ddp", trainings.digest(trainings.train_by_ddp(job)))
        loader = DataLoader(Numbers(), batch_size=4, num_workers=1, multiprocessing_context="spawn")
        print("loader", sum(batch.sum().item() for batch in loader))
        small = ["--width", "8", "--side", "16", "--steps", "20", "--batch-size", "16"]
        print("resnet18", resnet18.main(small, job), resnet18.main([*small, "--ddp", "--steps", "2"], job))


    if __name__ == "__main__":
        torch.set_num_threads(1)
        main()
    """

SERVERS = """
    import torch

    import fleet_mpi.torch as fleet
    from tests.unit.torch import trainings

    torch.set_num_threads(1)
    job = fleet.join(servers=2)
    model, optimizer = trainings.train_by_servers(job, backend="aot_eager" if job.worker else None)
    found = trainings.digest(model, model.rows(torch.arange(trainings.ROWS)))
    states = optimizer.state_dict()["state"] if job.worker == 0 else {}
    print(found, *[list(one["moment1"].shape) for one in states.values()])
    """


def job_of(tmp_path, text, ranks, **more):
    """Run a script on some ranks; returns what each said, by lines."""
    script = tmp_path / "job.py"
    script.write_text(textwrap.dedent(text))
    ended = run_job(ranks, [script], env={**QUICK, **more}, timeout=240)
    assert ended.code == 0, ended.story()
    return [rank.out.splitlines() for rank in ended.ranks]


@needs_torch
def test_equal_workers_have_the_bits_of_one_process(tmp_path):
    from tests.unit.torch import trainings
    with trainings.one_thread():
        exact, ddp = (trainings.digest(made(2)) for made in (trainings.by_one_process, trainings.by_halves))
    for said in job_of(tmp_path, EQUAL, 2):
        said = [line for line in said if not line.startswith("worker ")]
        assert said == [f"exact {exact}", "fast True", f"ddp {ddp}", "loader 66.0", said[-1]]
        assert re.match(r"resnet18 0 [01]$", said[-1])


@needs_torch
def test_two_servers_have_the_bits_of_numpy(tmp_path):
    from tests.unit.torch import trainings
    with trainings.one_thread():
        params, rows = trainings.by_numpy(2)
    expected = trainings.digest(*params, rows)
    assert job_of(tmp_path, SERVERS, 4) == [[], [], [f"{expected} [1, 8] [1]"], [expected]]


@needs_torch
@pytest.mark.parametrize("words, ranks", ((["clicks", "--height", "2000", "--steps", "120"], 3),
                                          (["mlp", "--servers", "2", "--mode", "async"], 4)), ids=("clicks", "mlp"))
def test_examples_run_as_jobs(words, ranks):
    ended = run_job(ranks, ["-m", f"fleet_mpi.examples.torch.{words[0]}", *words[1:]], env=QUICK, timeout=240)
    assert ended.code == 0, ended.story()
    assert ended.out.count(" it never saw") == 2, ended.story()


@needs_torch
def test_the_benchmark_runs():
    ended = subprocess.run([sys.executable, "-m", "benchmarks.torch_peers", "--quick", "--json"], cwd=ROOT,
                           env={**clean_environment(), **QUICK}, capture_output=True, text=True, timeout=240)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    told = json.loads(ended.stdout.splitlines()[-1])
    assert [len(told["dense"][0]["seconds"][way]) for way in ("parallel", "ddp", "gloo")] == [2, 2, 2]
    assert sorted(told["clicks"]) == ["alone", "servers"]
    assert "bare client" in told["door"]["seconds"]


def blocks():
    """(language, text) of the listings of the page."""
    page = (ROOT / "docs" / "torch.rst").read_text()
    found = re.findall(r"^\.\. code-block:: (\w+)\n\n((?:    .*\n|\n)+)", page, re.M)
    return [(language, textwrap.dedent(text).strip("\n") + "\n") for language, text in found]


def side(diff, sign):
    """One side of a diff that shows whole files."""
    return "".join(line[1:] + "\n" for line in diff.splitlines() if (line or " ")[0] in (" ", sign))


def test_the_diffs_of_the_page_are_of_its_script_and_of_five_lines():
    listing, *_ = [text for language, text in blocks() if language == "python"]
    diffs = [text for language, text in blocks() if language == "diff"]
    assert len(diffs) == 2
    for diff in diffs:
        assert side(diff, "-") == listing
        assert sum(line.startswith("+") for line in diff.splitlines()) == 5


@needs_torch
def test_the_scripts_of_the_page_run(tmp_path):
    alone, stock, embedding = [text for language, text in blocks() if language == "python"]
    equal, servers = [side(text, "+") for language, text in blocks() if language == "diff"]
    for text in (alone, stock, embedding, equal, servers):
        script = tmp_path / "train.py"
        script.write_text(text)
        ended = subprocess.run([sys.executable, script], env={**clean_environment(), **QUICK}, capture_output=True,
                               text=True, timeout=120)
        assert ended.returncode == 0, ended.stderr
        assert "loss 0.0" in ended.stdout or text in (stock, embedding), ended.stdout
    for text, ranks in ((equal, 2), (servers, 3)):
        said = job_of(tmp_path, text, ranks)
        assert sorted(line[:18] for lines in said for line in lines) == ["worker 0: loss 0.0", "worker 1: loss 0.0"]


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed: pip install jax")
def test_jax_trains_by_the_array_door():
    ended = run_job(3, ["-m", "fleet_mpi.examples.jax_arrays"], env=QUICK, timeout=240)
    assert ended.code == 0, ended.story()
    assert ended.out.count("loss 0.0") == 2, ended.story()
