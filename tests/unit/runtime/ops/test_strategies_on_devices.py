"""The strategies of collective training with every worker on the stand-in for a GPU: as on the host."""

import numpy as np
import pytest

from fleet_mpi import settings
from fleet_mpi.program.engine import places
from fleet_mpi.program.optimizers.plain import SGD, Adam, Momentum
from fleet_mpi.testing import DeviceArray
from tests.exact.collective_networks import batches, line, normed, wide
from tests.exact.collective_workers import build, strategy, train
from tests.unit.program.ops.checking import StandInPlace


def momentum():
    return Momentum(0.05, 0.9)


@pytest.mark.parametrize("network, optimizer, switches", (
    (line, lambda: SGD(0.1), dict(fp16_allreduce=True)),
    (line, lambda: SGD(0.1), dict(localsgd=True, localsgd_configs={"k_steps": 2, "begin_step": 1})),
    (line, lambda: SGD(0.1), dict(adaptive_localsgd=True,
                                  adaptive_localsgd_configs={"init_k_steps": 2, "begin_step": 1})),
    (line, lambda: SGD(0.1), dict(gradient_merge=True, gradient_merge_configs={"k_steps": 2, "avg": True})),
    (wide, momentum, dict(dgc=True, dgc_configs={"rampup_begin_step": 1, "rampup_step": 1, "sparsity": [0.99]})),
    (line, momentum, dict(lars=True)),
    (line, lambda: Adam(0.05), dict(lamb=True)),
    # The default scale is too large for this network's float16 gradients: steps would be skipped on devices only.
    (line, lambda: SGD(0.1), dict(amp=True, amp_configs={"init_loss_scaling": 8.0})),
    (line, lambda: SGD(0.1), dict(recompute=True, recompute_configs={"checkpoints": ["fc_0.tmp_2"]})),
    (normed, lambda: SGD(0.1), dict(sync_batch_norm=True)),
), ids=lambda one: next(iter(one)) if isinstance(one, dict) else "")
def test_a_strategy_trains_on_devices_as_on_the_host(network, optimizer, switches, monkeypatch):
    job, feeds = build(network, optimizer(), strategy(**switches), 2), batches(5, 2)
    on_hosts, _ = train(job, feeds)
    monkeypatch.setattr(places, "_chosen", StandInPlace())
    with settings.override(FLEET_MPI_ALLREDUCE="exact"):  # workers that are threads have neither MPI nor NCCL
        on_devices, _ = train(job, feeds)
    for one, other in zip(on_devices, on_hosts, strict=True):
        found, expected = one.values(job), other.values(job)
        for name, array in found.items():
            assert isinstance(array, DeviceArray)
            near = dict(rtol=1e-2, atol=2e-3) if "amp" in switches else dict(rtol=1e-3, atol=1e-5)
            np.testing.assert_allclose(array.get(), expected[name], **near, err_msg=name)
            assert not np.array_equal(array.get(), one.first[name].get()), "nothing was learned"
