"""Log lines: on stderr, once, and nothing on stdout."""

import os
import subprocess
import sys

import pytest

from fleet_mpi import notices, settings
from fleet_mpi.errors import EnvironmentProblem


def test_a_stand_in_is_announced_once_per_set_on_stderr(capfd):
    for _ in range(3):
        notices.stand_in("mnist", "strokes", "/somewhere")
    notices.stand_in("cifar", "stripes", "/somewhere")
    captured = capfd.readouterr()
    assert captured.out == ""
    assert [line.split(":")[1].strip() for line in captured.err.splitlines()] == ["mnist", "cifar"]


def test_a_script_that_configures_logging_does_not_double_the_lines(capfd):
    import logging
    root = logging.getLogger()
    handler = logging.StreamHandler()
    root.addHandler(handler)
    try:
        notices.once("key", "said")
    finally:
        root.removeHandler(handler)
    assert capfd.readouterr().err.count("said") == 1


def test_an_unknown_log_level_is_named():
    with settings.override(FLEET_MPI_LOG="loud"), pytest.raises(EnvironmentProblem, match="loud"):
        notices._level()


@pytest.mark.parametrize("variables, job, machine", (
    ({}, True, True), ({"PMIX_RANK": 0, "OMPI_COMM_WORLD_LOCAL_RANK": 0}, True, True),
    ({"PMIX_RANK": 2, "OMPI_COMM_WORLD_LOCAL_RANK": 0}, False, True),
    ({"PMI_RANK": 1, "MPI_LOCALRANKID": 1}, False, False),
    ({"SLURM_LOCALID": 3}, True, False)), ids=str)
def test_one_rank_speaks_for_a_job_or_a_machine(variables, job, machine):
    with settings.override(**variables):
        assert (notices.speaks_for_job(), notices.speaks_for_machine()) == (job, machine)


ROUTES = {
    "a handler before": ("", "logger.addHandler(h)", "", "app: heard\n", ""),
    "a handler besides": ("", "", "logger.addHandler(h)", "app: heard\n", "fleet_mpi: heard\n"),
    "a handler instead": ("", "", "logger.handlers[:] = [h]", "app: heard\n", ""),
    "the root's": ("", "logging.getLogger().addHandler(h)", "logger.propagate = True", "app: heard\n", ""),
    "the root's, unasked": ("", "logging.getLogger().addHandler(h)", "", "", "fleet_mpi: heard\n"),
    "nowhere else": ("", "", "logger.propagate = True", "", "fleet_mpi: heard\n"),
    "by dictConfig": ("", "", "logging.config.dictConfig({'version': 1, 'handlers': {'h': {'class': "
                      "'logging.StreamHandler', 'stream': 'ext://sys.stdout'}}, 'loggers': {'fleet_mpi': {'handlers': "
                      "['h'], 'level': 'INFO'}}})", "heard\n", ""),
    "a level": ("", "logger.setLevel('ERROR')", "", "", ""),
    "as the setting says": ("error", "", "", "", ""),
}


@pytest.mark.parametrize("level, before, after, out, err", ROUTES.values(), ids=ROUTES)
def test_an_application_routes_the_lines_by_the_loggers_name(level, before, after, out, err):
    program = ("import logging.config, sys; logger = logging.getLogger('fleet_mpi'); "
               "h = logging.StreamHandler(sys.stdout); h.setFormatter(logging.Formatter('app: %(message)s'))\n"
               f"{before}\nfrom fleet_mpi import notices\n{after}\nnotices.log().info('heard')")
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60,
                           env={**os.environ, "FLEET_MPI_LOG": level})
    assert (ended.stdout, ended.stderr) == (out, err)
