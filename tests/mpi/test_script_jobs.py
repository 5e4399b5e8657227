"""Scripts as users bring them, as jobs of several ranks: what the workers print, one value for each in rank order."""

import re
from typing import NamedTuple

import pytest

from tests.mpi.jobs import ROOT, run_job

SCRIPTS = ROOT / "tests" / "scripts"
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "FLEET_MPI_THREADS": "1"}
KNOWN = {"__builtins__": {one.__name__: one for one in (max, min, sorted, len)}}


class Job(NamedTuple):
    """How many ranks a script has, claims about what workers print, and the environment of all and of further ranks."""

    ranks: int
    claims: "tuple[str, ...]"
    env: "dict[str, str]" = {}
    further: "tuple[dict[str, str], ...]" = ()   # one more rank for each, where the environment says who is who


ONE_SERVER = {"FLEET_MPI_SERVERS": "1"}
JOBS = {
    "printed_programs": Job(2, ("sends == [5, 5]", "updates == [0, 0]", "blocks == clipped == [4, 4]",
                                "rows == [10000, 10000]")),
    "page_views": Job(2, ("views == first_places == [100, 100]", "max(last) < min(first) / 2", "right == [100, 100]")),
    "skip_gram_workers": Job(2, ("batches == of == [184, 184]", "max(last) < min(first) / 2", "near[0] == near[1]")),
    "names_of_later_versions": Job(2, ("max(last) < min(first) / 10", "parameters == [2, 2]")),
    "fleet_collective": Job(2, ("worker == [0, 1]", "of == [2, 2]", "max(last) < min(first) / 5",
                                "test_accuracy[0] == test_accuracy[1] > 0.8", "loaded_accuracy == test_accuracy[:1]")),
    "static_click": Job(3, ("workers == [2, 2]", "sorted(first_worker) == [0, 1]", "max(last) < min(first) / 2",
                            "min(auc) > 0.9"), ONE_SERVER),
    "word2vec_nce": Job(3, ("max(last) < min(first) * 0.6", "nce == [1, 1]"), ONE_SERVER),
    # Ranks of even number serve.
    "global_metrics": Job(4, ("workers == [2, 2]", "total == [2560, 2560]", "same == [1, 1]", "auc[0] == auc[1] > 0.95",
                              "rmse == rmse2", "max(rmse) < 0.3")),
    "transpiled": Job(1, ("len(last) == 2", "max(last) < min(first) * 0.8"),
                      {"PADDLE_TRAINERS": "2", "PADDLE_PSERVER_IPS": "127.0.0.1", "PADDLE_TRAINER_ID": "0"},
                      ({"PADDLE_TRAINER_ID": "1"}, {"PADDLE_TRAINING_ROLE": "PSERVER"})),
}


def ended_job(name, env):
    """The job of a script, at its end."""
    job, words = JOBS[name], ["-m", "fleet_mpi", SCRIPTS / f"{name}.py"]
    return run_job(job.ranks, words, env={**ONE_THREAD, **env, **job.env}, timeout=240,
                   mpmd=[(1, words, role) for role in job.further])


def numbers_by_worker(ranks):
    """{name: values} of all ``name=number`` words, in rank order; of what a rank prints twice, the last."""
    found = {}
    for rank in ranks:
        for name, value in dict(re.findall(r"\b([a-z]\w*)=(-?\d[\d.e+-]*)", rank.out)).items():
            found.setdefault(name, []).append(float(value))
    return found


@pytest.mark.parametrize("name", JOBS)
def test_a_script_runs_unchanged_as_a_job(name, tmp_path):
    ended = ended_job(name, {"DATA_HOME": str(tmp_path)})
    assert ended.code == 0, ended.story()
    numbers = numbers_by_worker(ended.ranks)
    for claim in JOBS[name].claims:
        assert eval(claim, KNOWN, numbers), f"{claim} with {numbers}\n{ended.story()}"
