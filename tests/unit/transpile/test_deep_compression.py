"""Programs that compress: the gradient of this worker's own batch is what the op reads, decay added after."""

import pytest

from fleet_mpi.errors import NotBuilt
from fleet_mpi.program.build.amp import decorate
from fleet_mpi.program.build.clip import ClipByNorm
from fleet_mpi.program.build.regularizers import L1Decay, L2Decay
from fleet_mpi.program.optimizers.compressed import DGCMomentumOptimizer
from fleet_mpi.program.optimizers.plain import Momentum
from fleet_mpi.program.optimizers.wrappers import GradientMergeOptimizer
from tests.exact.collective_networks import batches, wide
from tests.exact.collective_workers import build, same, strategy, train

GRAD = "fc_0.w_0@GRAD"


def makers(program, name):
    """The types of the ops from a gradient to the update that reads it, last first."""
    found, ops = [], program.global_block().ops
    while name != GRAD:
        op = next(one for one in ops if name in one.output_arg_names)
        found.append(op.type)
        name = op.input("X")[0]
    return found


@pytest.mark.parametrize("options, expected", (
    (dict(), ["scale"]), (dict(regularization=L2Decay(0.1)), ["sum", "scale"]),
    (dict(grad_clip=ClipByNorm(1.0)), ["scale", "clip_by_norm"]),
    (dict(regularization=L2Decay(0.1), grad_clip=ClipByNorm(1.0)), ["sum", "scale", "clip_by_norm"])))
def test_the_gradient_is_scaled_up_between_clipping_and_decay(options, expected):
    main = build(wide, Momentum(0.1, 0.9, **options), strategy(dgc=True), 4).main
    op, = (one for one in main.global_block().ops if one.type == "c_dgc_momentum")
    assert op.attrs["nranks"] == 4 and makers(main, op.input("Grad")[0]) == expected
    scale, = (one for one in main.global_block().ops if one.type == "scale" and one.attrs["scale"] == 4.0)
    assert scale.output("Out")[0].endswith("@TIMES_WORKERS")


def test_the_optimizer_compresses_without_a_switch_too():
    jobs = [build(wide, DGCMomentumOptimizer(0.1, 0.9, 0, sparsity=[0.99]), None, 2),
            build(wide, Momentum(0.1, 0.9), strategy(dgc=True, dgc_configs={"sparsity": [0.99]}), 2)]
    assert same(*(train(job, batches(2, 2))[0][0].values(job) for job in jobs))


def test_compression_within_merged_steps_is_refused():
    with pytest.raises(NotBuilt, match="within GradientMergeOptimizer"):
        build(wide, GradientMergeOptimizer(DGCMomentumOptimizer(0.1, 0.9, 0), 2), None, 2)


def test_compression_with_loss_scaling_is_refused():
    with pytest.raises(NotBuilt, match="with loss scaling"):
        build(wide, decorate(DGCMomentumOptimizer(0.1, 0.9, 0)), None, 2)


@pytest.mark.parametrize("decay", (None, L2Decay(0.1), L1Decay(0.01)), ids=("no decay", "l2", "l1"))
@pytest.mark.parametrize("workers, nesterov", ((2, False), (3, False), (3, True)))
def test_before_the_ramp_up_the_bits_are_those_of_plain_momentum(workers, nesterov, decay):
    def trained(**switches):
        job = build(wide, Momentum(0.1, 0.9, use_nesterov=nesterov, regularization=decay), strategy(**switches),
                    workers)
        return train(job, batches(5, workers))[0][0].values(job)
    assert same(trained(dgc=True, dgc_configs={"rampup_begin_step": 5}), trained())
    assert not same(trained(dgc=True, dgc_configs={"rampup_begin_step": 4}), trained())
