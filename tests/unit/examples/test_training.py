"""What the examples have in common: who a process is, what it trains on, and which mode an option means."""

import argparse

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.errors import EnvironmentProblem, UsageError
from fleet_mpi.examples import training
from fleet_mpi.fleet.job import config_of
from fleet_mpi.modes import MODES
from fleet_mpi.transpile.mode_choice import chosen_mode


def options(*words):
    """The options of a command line."""
    parser = argparse.ArgumentParser()
    training.add_options(parser, api="transpiler")
    return parser.parse_args(words)


@pytest.mark.parametrize("given", (training.config_for, training.strategy_for))
@pytest.mark.parametrize("mode", (*MODES, *training.ALSO_CALLED))
def test_every_mode_can_be_asked_for_in_every_way(mode, given):
    config, communicator = config_of(given(options("--mode", mode)))
    assert chosen_mode(config, mode == "sync", communicator)[0] == training.ALSO_CALLED.get(mode, mode)


@pytest.mark.parametrize("given", (training.config_for, training.strategy_for))
def test_numbers_reach_their_modes(given):
    assert chosen_mode(*_config(given, "--mode", "geo", "--k-steps", "7")) == ("geo", {"k_steps": 7})
    assert chosen_mode(*_config(given, "--mode", "bounded_staleness", "--staleness", "5")) == (
        "bounded_staleness", {"bound": 5})


def _config(given, *words):
    config, communicator = config_of(given(options(*words)))
    return config, False, communicator


def test_a_process_by_itself_is_alone():
    job = training.job(options())
    assert (job.is_alone, job.is_server, job.name) == (True, False, "")
    assert list(job.share(lambda: iter(range(5)))()) == [0, 1, 2, 3, 4]
    assert job.all_reduce(np.array([2.0])).tolist() == [2.0]


def test_shares_of_workers_are_all_the_samples_and_nearly_equal():
    job = training.Alone(options(), None)
    shares = []
    for job.worker in range(3):
        job.workers = 3
        shares.append(list(job.share(lambda: iter(range(11)))()))
    assert sorted(sum(shares, [])) == list(range(11))
    assert {len(share) for share in shares} == {3, 4}


GUIDE = dict(PADDLE_PSERVER_IPS="192.168.1.2, 192.168.1.3", PADDLE_PSERVER_PORT="6174", PADDLE_TRAINERS=2,
             PADDLE_TRAINER_ID=1)


@pytest.mark.parametrize("own", ("PADDLE_CURRENT_IP", "PADDLE_CURRENT_IPP"))
def test_a_server_finds_itself_by_its_address_however_that_is_spelt(own):
    with settings.override(**GUIDE, PADDLE_TRAINING_ROLE="PSERVER", **{own: "192.168.1.3"}):
        role = training._role()
    assert (role.is_server(), role.server_index(), role.worker_num()) == (True, 1, 2)
    assert role.get_pserver_endpoints() == ["192.168.1.2:6174", "192.168.1.3:6174"]


def test_a_worker_has_the_number_it_was_given():
    with settings.override(**GUIDE, PADDLE_TRAINING_ROLE="TRAINER"):
        role = training._role()
    assert (role.is_worker(), role.worker_index(), role.server_num()) == (True, 1, 2)


def test_a_server_that_is_not_among_the_servers_is_refused():
    with settings.override(**GUIDE, PADDLE_TRAINING_ROLE="PSERVER", PADDLE_CURRENT_IP="192.168.1.9"):
        with pytest.raises(EnvironmentProblem, match="PADDLE_CURRENT_IP='192.168.1.9' is not among"):
            training._role()


def collective(*words, api="fleet2", **settings_of_job):
    """The job of a process that is told to train collectively."""
    with settings.override(**settings_of_job):
        return training.job(options("--mode", "collective", "--api", api, *words))


@pytest.mark.parametrize("api", list(training.APIS))
def test_a_process_by_itself_may_train_collectively(api):
    job = collective(api=api)
    assert isinstance(job, training.COLLECTIVE_APIS[api]) and (job.is_alone, job.worker, job.workers) == (True, 0, 1)
    assert list(job.share(lambda: iter(range(5)))()) == [0, 1, 2, 3, 4]
    assert job.lowest(2) == 2.0


def test_workers_that_wait_for_each_other_have_equal_shares():
    job, shares = collective(), []
    for job.worker in range(3):
        job.workers = 3
        shares.append(list(job.share(lambda: iter(range(11)))()))
    assert shares == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]


def test_without_a_mode_there_are_servers_or_all_work(monkeypatch):
    monkeypatch.setattr(training.PaddleCloudRoleMaker, "generate_role", lambda self: None)
    monkeypatch.setattr(training.CollectiveThroughTranspiler, "join", lambda self: None)
    with settings.override(PADDLE_TRAINER_ENDPOINTS="a:1,b:1", PADDLE_TRAINER_ID=1):
        job = training.job(options())
    assert (job.options.mode, job.worker, job.workers, job.name) == ("collective", 1, 2, "worker 1")
    with settings.override(PADDLE_PSERVERS_IP_PORT_LIST="s:1", PADDLE_TRAINERS_NUM=2, PADDLE_TRAINER_ID=1,
                           TRAINING_ROLE="TRAINER"):
        job = training.job(options())
    assert (job.options.mode, type(job)) == ("sync", training.ThroughTranspiler)


def test_words_set_options_of_the_strategy():
    strategy = training.fleet2.DistributedStrategy()
    training._set_all(strategy, ["amp", "nccl_comm_num=2", "localsgd_configs.k_steps=4", "dgc=False"])
    assert strategy.changed() == {"amp": True, "nccl_comm_num": 2, "localsgd_configs": {"k_steps": 4}}
    config = training.fluid.DistributeTranspilerConfig()
    training._set_all(config, ["collective_mode=local_sgd"])
    assert config.collective_mode == "local_sgd"


def test_a_strategy_for_what_is_not_collective_is_refused():
    with pytest.raises(UsageError, match="--strategy amp: .* give --mode collective"):
        training.job(options("--strategy", "amp"))
