"""The ops of strategies that send something else than gradients: local SGD, deep compression, batch norm over all
workers.

What they compute is in ``collective/``; programs get them from ``transpile/``.
"""

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.collective import local_sgd
from fleet_mpi.collective.batch_statistics import added, joined
from fleet_mpi.collective.deep_compression import shared_step
from fleet_mpi.kernels.reference import normalization as kernels
from fleet_mpi.program.graph.registry import op
from fleet_mpi.program.ops import normalization
from fleet_mpi.program.ops.optimize import attributes, infer_update, out_slot, settings_of
from fleet_mpi.runtime.ops.collective import the_session
from fleet_mpi.update_rules import RULES

DGC = RULES["dgc_momentum"]
DGC_SLOTS = [state.slot for state in DGC.states]


@op("local_sgd_is_due", "Step Last Every", "Due StepOut LastOut", attrs={"begin_step": 1}, effect=True)
class LocalSgdIsDue:
    """Counts the step; Due tells whether parameters are averaged after it, and Last is the step if so."""

    def infer(k):
        k.set("Due", [1], "bool", lod=())
        for slot in ("Step", "Last"):
            k.set(slot + "Out", [1], k.dtype(slot), lod=())

    def run(k):
        """Numbers are read on the host: on a device this waits for the step."""
        step, last, every, due, begin = k["Step"], k["Last"], k["Every"], k["Due"], k.attr("begin_step")

        def run():
            step.fill(_number(step) + 1)
            due.fill(local_sgd.is_due(_number(step), _number(last), _number(every), begin))
            if _number(due):
                last.fill(_number(step))
        return run


@op("local_sgd_adapt", "Loss LearningRate Due Step Last Every FirstLoss FirstRate",
    "EveryOut FirstLossOut FirstRateOut",
    attrs={"begin_step": 1, "init_k_steps": 1}, effect=True)
class LocalSgdAdapt:
    """After an averaging: how many steps to the next one, by the workers' mean loss and the learning rate."""

    def infer(k):
        for slot in ("Every", "FirstLoss", "FirstRate"):
            k.set(slot + "Out", [1], k.dtype(slot), lod=())

    def run(k):
        """Step 1 is remembered; later ones that are due are held against it."""
        session, loss, rate, due, step = (the_session(k),
                                          *(k[slot] for slot in ("Loss", "LearningRate", "Due", "Step")))
        every, first_loss, first_rate = k["Every"], k["FirstLoss"], k["FirstRate"]
        begin, first_every = k.attr("begin_step"), k.attr("init_k_steps")

        def run():
            now = _number(step)
            if now == 1:
                first_loss.fill(_mean(session, loss))
                first_rate.fill(_number(rate))
            if now > begin and _number(due):
                every.fill(local_sgd.next_every(first_every, _number(first_rate), _number(rate), _number(first_loss),
                                                _mean(session, loss)))
        return run


def _mean(session, loss):
    parts = session.gather([np.asarray(arrays.to_host(loss)).reshape(1)])
    return local_sgd.mean_in_order([part[0][0] for part in parts]).item()


def _number(array):
    return arrays.to_host(array).reshape(-1)[0].item()


@op("c_dgc_momentum", " ".join(["Param", "Grad", "LearningRate", *DGC_SLOTS, "Share", "Decay?"]),
    " ".join(["ParamOut", *map(out_slot, DGC_SLOTS)]), attrs={**attributes(DGC, DGC.hypers), "nranks": 1}, effect=True)
class CDgcMomentum:
    """``dgc_momentum`` by what all workers choose of their gradients."""

    def infer(k):
        """As they were; gradient and parameter must agree."""
        infer_update(k, DGC_SLOTS)

    def run(k):
        """One exchange; each output is its input."""
        session, workers, hypers = the_session(k), k.attr("nranks"), settings_of(k, DGC)
        session.connection.gathers = True  # the step's number is read on the host: the sums are waited for before
        lines = [k[slot].reshape(-1) for slot in ("Share", "Param", "Grad", "LearningRate", *DGC_SLOTS)]
        decay = k["Decay"].reshape(-1) if k.has("Decay") else None
        return lambda: shared_step(session, workers, lines[0], decay, *lines[1:], **hypers)


@op("sync_batch_norm", normalization.INPUTS, normalization.OUTPUTS, attrs=normalization.ATTRS,
    grad_reads="X Scale SavedMean SavedVariance", effect=True)
class SyncBatchNorm:
    """``batch_norm`` by the mean and variance over all workers' batches; by running statistics it is the same op."""

    infer = normalization.infer_batch_norm

    def run(k):
        """The batch's statistics, those of all, then one pass by them."""
        if normalization.statistics_are_given(k):
            return normalization.run_batch_norm(k)
        return _bound_forward(k)

    def grad(k):
        """The same for the gradients' sums; those of scale and bias stay this worker's: they are summed with all
        others."""
        if normalization.statistics_are_given(k):
            return normalization.run_batch_norm_gradients(k)
        return _bound_backward(k)


def _bound_forward(k):
    x, y, axis, session = k["X"], k["Y"], normalization.channel_axis(k), the_session(k)
    scale, bias, mean, variance = (k[slot] for slot in normalization.INPUTS.split()[1:])
    running_mean, running_variance, saved_mean, saved_inverse = (
        k.keep(mean.shape, mean.dtype) if k[slot] is None else k[slot] for slot in normalization.OUTPUTS.split()[1:])
    own, momentum, epsilon = [k.keep(mean.shape, mean.dtype) for _ in range(4)], k.attr("momentum"), k.attr("epsilon")
    all_mean, all_variance = k.keep(mean.shape, mean.dtype), k.keep(mean.shape, mean.dtype)
    # With a momentum of 0 the running statistics are the batch's; what it writes to y is written again below.
    measure = kernels.batch_norm_forward(x, scale, bias, y, own[0], own[1], own[2], own[3], 0.0, epsilon, False, axis)
    normalise = kernels.batch_norm_inference(x, scale, bias, all_mean, all_variance, y, saved_inverse, epsilon, False,
                                             axis)
    count = np.array([x.size // mean.size], np.int64)

    def run():
        own[2].fill(0)
        own[3].fill(0)
        measure()
        found = joined(session.gather([arrays.to_host(own[2]), arrays.to_host(own[3]), count]))
        for target, value in ((all_mean, found[0]), (all_variance, found[1])):
            target[...] = arrays.to_module(value.astype(target.dtype), k.xp)
        normalise()
        saved_mean[...] = all_mean
        running_mean[...] = mean * momentum + all_mean * (1 - momentum)
        running_variance[...] = variance * momentum + all_variance * (1 - momentum)
    return run


def _bound_backward(k):
    x, dy, scale, axis, session = k["X"], k["Y@GRAD"], k["Scale"], normalization.channel_axis(k), the_session(k)
    mean, inverse = k["SavedMean"], k["SavedVariance"]
    dx, dscale, dbias = (k.keep(like.shape, like.dtype) if k[slot] is None else k[slot]
                         for slot, like in (("X@GRAD", x), ("Scale@GRAD", scale), ("Bias@GRAD", scale)))
    local = kernels.batch_norm_backward(x, dy, None, scale, mean, inverse, dx, dscale, dbias, True, axis)
    shape = kernels.channel_view_shape(x.shape, axis)
    count = np.array([shape[0] * shape[2]], np.int64)

    def run():
        local()  # dx as if the statistics were given: what they pass on is taken away below
        totals = added(session.gather([arrays.to_host(dscale), arrays.to_host(dbias), count]))
        by_scale, by_bias = (arrays.to_module(one / int(totals[2][0]), k.xp).astype(x.dtype) for one in totals[:2])
        values, made = x.reshape(shape), dx.reshape(shape)
        along = (values - mean[None, :, None]) * (inverse * by_scale)[None, :, None]
        made -= (along + by_bias[None, :, None]) * (scale * inverse)[None, :, None]
    return run
