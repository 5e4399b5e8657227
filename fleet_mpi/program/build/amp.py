"""Mixed precision: float16 where the lists allow it, a scaled loss, and no update where gradients are not finite.

On a device the ops that ``amp_lists`` marks are computed in float16, with float32 parameters. On a CPU, where float16
is slow, all arithmetic stays float32; scale, counters and skipping are the same. bfloat16 is not built: numpy, which
holds what is fed, fetched and saved, has no such type.
"""

from fleet_mpi.program.build.amp_lists import AutoMixedPrecisionLists, mark
from fleet_mpi.program.graph import unique_name
from fleet_mpi.program.graph.program import default_main_program
from fleet_mpi.program.graph.unique_name import name_scope
from fleet_mpi.program.optimizers.base import persistable, programs_of
from fleet_mpi.program.optimizers.wrappers import Wrapper


class OptimizerWithMixedPrecision(Wrapper):
    """An optimizer whose loss is scaled and whose network is computed in mixed precision; made by ``decorate``."""

    def __init__(self, optimizer, amp_lists, init_loss_scaling, use_dynamic_loss_scaling, **scaling):
        super().__init__(optimizer)
        self._amp_lists = amp_lists or AutoMixedPrecisionLists()
        self._init_loss_scaling = float(init_loss_scaling)
        self._is_dynamic, self._scaling = use_dynamic_loss_scaling, scaling
        self._loss_scaling = self._scaled_loss = None

    def get_loss_scaling(self):
        """The variable that holds the scale; None before ``backward``."""
        return self._loss_scaling

    def get_scaled_loss(self):
        """The variable of the scaled loss; None before ``backward``."""
        return self._scaled_loss

    def amp_init(self, place, scope=None, test_program=None, use_fp16_test=False):
        """Nothing: parameters stay float32."""

    def backward(self, loss, startup_program=None, parameter_list=None, no_grad_set=None, callbacks=None):
        """Mark the forward ops, scale the loss, add the backward ops; returns [(parameter, scaled gradient)]."""
        with programs_of(loss, startup_program):
            block = default_main_program().current_block()
            mark(loss.block.program.global_block(), self._amp_lists)
            self._loss_scaling = persistable(unique_name.generate("loss_scaling"), [1], loss.dtype,
                                             self._init_loss_scaling)
            self._scaled_loss = block.create_var(name=unique_name.generate("scaled_loss"), shape=loss.shape,
                                                 dtype=loss.dtype)
            block.append_op("elementwise_mul", {"X": [loss], "Y": [self._loss_scaling]},
                            {"Out": [self._scaled_loss]})
        return self.inner_optimizer.backward(self._scaled_loss, startup_program, parameter_list, no_grad_set, callbacks)

    def apply_gradients(self, params_grads):
        """Unscale in place, move the scale on, and update unless a gradient was not finite."""
        grads = [grad for _, grad in params_grads if grad is not None]
        program = default_main_program()
        with program._optimized_guard([]), name_scope("loss_scaling"):
            block = program.current_block()
            found = block.create_var(name=unique_name.generate("found_infinite"), shape=[1], dtype="bool",
                                     stop_gradient=True)
            block.append_op("check_finite_and_unscale", {"X": grads, "Scale": [self._loss_scaling]},
                            {"Out": grads, "FoundInfinite": [found]})
            if self._is_dynamic:
                self._append_update(block, grads, found)
        self.inner_optimizer.skip_when(found)
        try:
            return self.inner_optimizer.apply_gradients(params_grads)
        finally:
            self.inner_optimizer.skip_when(None)

    def _append_update(self, block, grads, found):
        scale = [self._loss_scaling]
        good, bad = ([persistable(unique_name.generate(name), [1], "int32", 0)] for name in ("num_good_steps",
                                                                                             "num_bad_steps"))
        block.append_op("update_loss_scaling",
                        {"X": grads, "FoundInfinite": [found], "PrevLossScaling": scale, "InGoodSteps": good,
                         "InBadSteps": bad},
                        {"Out": grads, "LossScaling": scale, "OutGoodSteps": good, "OutBadSteps": bad}, self._scaling)


def decorate(optimizer, amp_lists=None, init_loss_scaling=2 ** 15, incr_every_n_steps=1000, decr_every_n_nan_or_inf=2,
             incr_ratio=2.0, decr_ratio=0.8, use_dynamic_loss_scaling=True, use_pure_fp16=False, use_fp16_guard=None):
    """The optimizer in mixed precision. The last two are taken for scripts of 2.x and without effect."""
    return OptimizerWithMixedPrecision(
        optimizer, amp_lists, init_loss_scaling, use_dynamic_loss_scaling, incr_every_n_steps=incr_every_n_steps,
        decr_every_n_nan_or_inf=decr_every_n_nan_or_inf, incr_ratio=incr_ratio, decr_ratio=decr_ratio)
