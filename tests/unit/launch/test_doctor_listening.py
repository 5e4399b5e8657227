"""A probe is heard to its end, and not longer than it is allowed: what hangs or dies is told, and ended."""

import os
import time

import pytest

from fleet_mpi.launch import doctor_listening
from fleet_mpi.launch.doctor_listening import Heard, listening

pytestmark = pytest.mark.slow

WHO = """echo '{"facts": {"pid": '$$'}}'; """
MEETS = """echo '{"step": "starting MPI"}'; """


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(doctor_listening, "MPI_GRACE_S", 0)


def heard(script, deadline_s=30, **options):
    """What a probe that is this shell script was heard to say."""
    with listening(["sh", "-c", script], dict(os.environ), deadline_s, **options) as told:
        return told


def test_facts_and_the_meeting_are_heard_between_other_lines():
    told = heard("""echo '{"step": "cores"}'; echo '{"facts": {"a": 1}}'; echo 'MPI: noise'; echo '[1, 2]'; """ + MEETS
                 + """echo '{"met": [{"a": 1}, {"a": 2}], "rank": 0, "seconds": 0.5}'; read line""")
    assert told == Heard({"a": 1}, met=[{"a": 1}, {"a": 2}], seconds=0.5)


def test_a_probe_that_ends_after_its_steps_has_said_all():
    assert heard("""echo '{"step": "cores"}'; echo '{"facts": {"a": 1}}'""") == Heard({"a": 1})


def test_the_step_that_hangs_is_named_and_the_probe_ended():
    begun = time.monotonic()
    told = heard(WHO + """echo driver? >&2; echo '{"step": "GPU"}'; exec sleep 60""", deadline_s=2)
    assert (told.step, told.hung, told.apart) == ("GPU", True, "driver?")
    assert time.monotonic() - begun < 30 and not os.path.exists(f"/proc/{told.facts['pid']}")


def test_a_probe_that_does_not_listen_to_signals_is_killed(monkeypatch):
    monkeypatch.setattr(doctor_listening, "_ENDING_S", 0.3)
    told = heard("trap '' TERM; " + WHO + MEETS + "exec sleep 60", deadline_s=2)
    assert told.hung and not os.path.exists(f"/proc/{told.facts['pid']}")


def test_a_probe_that_dies_leaves_its_last_words():
    told = heard(MEETS + "printf -- '----\\nno PMI\\0\\n----\\n' >&2; exit 16")
    assert (told.step, told.hung, told.apart, told.met) == ("starting MPI", False, "no PMI", None)
    assert "exit code -9" in heard(MEETS + "kill -9 $$").apart


def test_a_probe_stays_until_the_block_ends():
    script = """echo '{"apart": "alone", "facts": {"pid": '$$'}}'; read line"""
    with listening(["sh", "-c", script], dict(os.environ), 30) as told:
        assert told.apart == "alone" and os.path.exists(f"/proc/{told.facts['pid']}")
    assert not os.path.exists(f"/proc/{told.facts['pid']}")


def test_what_starts_ranks_ends_with_them():
    told = heard("""sleep 60 & echo '{"facts": {"child": '$!'}}'; """ + MEETS + "wait", deadline_s=2, starts_ranks=True)
    deadline = time.monotonic() + 10
    while _runs(told.facts["child"]):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _runs(pid):
    """Whether a process is there, and not merely waiting for somebody to ask how it ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_command_that_cannot_be_started_is_a_problem():
    with listening(["/nowhere/mpirun"], {}, 5) as told:
        assert "/nowhere/mpirun cannot be started" in told.apart
