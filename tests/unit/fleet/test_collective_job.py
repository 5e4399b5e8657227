"""From strategies to what workers do together."""

import pytest

from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.fleet import application, collective_strategy
from fleet_mpi.fleet.collective_job import options_of, schedule_of, synchronises
from fleet_mpi.program.engine.compiled import BuildStrategy
from fleet_mpi.program.optimizers.compressed import DGCMomentumOptimizer
from fleet_mpi.program.optimizers.plain import SGD, Lamb, Momentum
from fleet_mpi.transpile import collective
from fleet_mpi.transpile.local_sgd import Schedule
from tests.exact.collective_networks import batches, line, normed
from tests.exact.collective_workers import build, same, strategy, train


def of_1x(**options):
    """A 1.x strategy with these options."""
    made = collective_strategy.DistributedStrategy()
    for name, value in options.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize("chosen, expected", (
    (strategy(), None), (None, None), (of_1x(), None),
    (of_1x(mode="collective", collective_mode="grad_allreduce"), None),
    (strategy(localsgd=True, localsgd_configs={"k_steps": 4, "begin_step": 9}), Schedule(4, 9)),
    (strategy(adaptive_localsgd=True, adaptive_localsgd_configs={"init_k_steps": 3}), Schedule(3, 1, adapts=True)),
    (of_1x(use_local_sgd=True), Schedule()), (of_1x(mode="collective", collective_mode="local_sgd"), Schedule())))
def test_schedules_of_local_sgd(chosen, expected):
    assert schedule_of(chosen) == expected


@pytest.mark.parametrize("told", ("ring", "LocalSGD"))
def test_unknown_collective_modes_are_refused(told):
    with pytest.raises(UsageError, match="expected grad_allreduce or local_sgd"):
        schedule_of(of_1x(collective_mode=told))


def test_local_sgd_is_not_lost_in_another_mode():
    with pytest.raises(UsageError, match="local_sgd needs mode collective"):
        schedule_of(of_1x(collective_mode="local_sgd"))


@pytest.mark.parametrize("optimizer", (DGCMomentumOptimizer(0.1, 0.9, 0), Lamb(0.1)))
def test_local_sgd_of_1x_refuses_what_it_does_not_go_with(optimizer):
    with pytest.raises(UsageError, match="use_local_sgd does not go together with"):
        application.applied(optimizer, of_1x(use_local_sgd=True), 2)


def test_local_sgd_of_1x_averages_after_every_step():
    jobs = [build(line, SGD(0.1), chosen, 2) for chosen in (of_1x(use_local_sgd=True), strategy(localsgd=True))]
    old, new = (train(job, batches(4, 2))[0] for job in jobs)
    assert same(old[0].values(jobs[0]), new[1].values(jobs[1])) and same(old[0].values(jobs[0]), old[1].values(jobs[0]))


def test_batch_norms_of_all_workers_need_one_communicator_and_no_nodes():
    build_strategy = BuildStrategy()
    build_strategy.sync_batch_norm = True
    for chosen in (strategy(sync_batch_norm=True, nccl_comm_num=3, use_hierarchical_allreduce=True),
                   strategy(build_strategy=build_strategy, nccl_comm_num=3),
                   of_1x(sync_batch_norm=True, nccl_comm_num=3)):
        assert synchronises(chosen)
        assert (options_of(chosen).comms, options_of(chosen).by_node) == (1, False)
        types = {op.type for op in build(normed, SGD(0.1), chosen, 2).main.global_block().ops}
        assert types >= {"sync_batch_norm", "sync_batch_norm_grad"} and not types & {"batch_norm", "batch_norm_grad"}
    assert not synchronises(strategy()) and not synchronises(of_1x()) and not synchronises(None)


def test_half_is_not_rounded_within_nodes(capsys):
    assert not options_of(strategy(fp16_allreduce=True, use_hierarchical_allreduce=True)).by_node
    assert "use_hierarchical_allreduce is not applied" in capsys.readouterr().err


def test_gradients_may_be_added_up_instead_of_averaged():
    mean, total = (build(line, SGD(rate), strategy(gradient_scale_configs={"scale_strategy": how}), 2)
                   for rate, how in ((0.1, "avg"), (0.05, "sum")))
    found, expected = (train(job, batches(3, 2))[0][0].values(job) for job in (total, mean))
    assert same(found, expected), "half the rate times the sum is the rate times the mean, to the bit"
    assert options_of(of_1x(gradient_scale_strategy=BuildStrategy.GradientScaleStrategy.One)).mean is False


@pytest.mark.parametrize("chosen", (strategy(gradient_scale_configs={"scale_strategy": "customized"}),
                                    of_1x(gradient_scale_strategy=BuildStrategy.GradientScaleStrategy.Customized)))
def test_gradients_scaled_by_the_script_are_refused(chosen):
    with pytest.raises(NotBuilt, match="not built"):
        options_of(chosen)


def test_compression_takes_the_place_of_momentum():
    chosen = strategy(dgc=True, dgc_configs={"rampup_begin_step": 7, "rampup_step": 2, "sparsity": [0.5, 0.75]})
    found = application.applied(Momentum(0.1, 0.8, use_nesterov=True), chosen, 2)
    assert type(found) is DGCMomentumOptimizer
    assert found.hypers == {"mu": 0.8, "use_nesterov": True, "rampup_begin_step": 7, "rampup_step": 2,
                            "sparsity": (0.5, 0.75)}
    assert application.applied(Momentum(0.1, 0.8), strategy(dgc=True), 2).hypers["sparsity"] == (0.999,)


@pytest.mark.parametrize("name", ("mp_degree", "pp_degree", "sharding_degree", "sep_degree"))
def test_parallel_models_are_refused(name):
    with pytest.raises(NotBuilt, match=f"hybrid_configs.'{name}'. not built"):
        application.applied(SGD(0.1), strategy(hybrid_configs={name: 2}), 2)


def test_local_sgd_goes_with_neither_compression_nor_merging():
    merged = strategy(gradient_merge=True, gradient_merge_configs={"k_steps": 2})
    job = build(line, SGD(0.1), merged, 1)
    with pytest.raises(UsageError, match="local SGD sends no gradients"):
        collective.rewrite_for_local_sgd(job.main, job.startup, job.plan)


@pytest.mark.parametrize("one, other", ((dict(localsgd=True), dict(localsgd=True, localsgd_configs={"k_steps": 2})),
                                        (dict(), dict(sync_batch_norm=True)), (dict(), dict(fp16_allreduce=True))))
def test_workers_that_differ_in_their_strategy_differ_in_what_they_must_agree_on(one, other):
    prints = [build(normed, SGD(0.1), strategy(**switches), 2).plan.fingerprint() for switches in (one, one, other)]
    assert prints[0] == prints[1] != prints[2]
