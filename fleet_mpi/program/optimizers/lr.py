"""Learning-rate schedulers of 2.x (``paddle.optimizer.lr``): Python objects that the script moves on by ``step()``.

An optimizer that gets one writes its value into the learning-rate variable before every run. Knows no
programs.
"""

import math

from fleet_mpi import notices
from fleet_mpi.errors import UsageError


def checked_rate(owner, value):
    """A learning rate as a float; NaN, infinity and what is below 0 are refused."""
    if not 0 <= float(value) < math.inf:
        raise UsageError(f"{owner}: learning_rate must be a finite number from 0 up, got {value!r}")
    return float(value)


class LRScheduler:
    """Base: a subclass gives ``get_lr()`` from ``base_lr`` and ``last_epoch``. The first value is that of epoch 0."""

    kept = ("last_epoch", "last_lr")

    def __init__(self, learning_rate=0.1, last_epoch=-1, verbose=False):
        if isinstance(learning_rate, bool) or not isinstance(learning_rate, (int, float)):
            raise UsageError(f"{type(self).__name__}: learning_rate must be a number, got "
                             f"{type(learning_rate).__name__}")
        self.base_lr = self.last_lr = checked_rate(type(self).__name__, learning_rate)
        self.last_epoch = last_epoch
        self.verbose = verbose
        self.step()

    def __call__(self):
        """The rate now."""
        return self.last_lr

    def get_lr(self):
        """The rate of epoch ``last_epoch``."""
        raise NotImplementedError(type(self).__name__)

    def step(self, epoch=None):
        """Go to the next epoch, or to this one."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self.last_lr = self.get_lr()
        self._tell()

    def _tell(self):
        if self.verbose:
            notices.log().info("%s: epoch %s, learning rate %s", type(self).__name__, self.last_epoch, self.last_lr)

    def state_dict(self):
        """What must be kept to go on later."""
        return {name: getattr(self, name) for name in self.kept}

    def set_state_dict(self, state_dict):
        """Go on from where ``state_dict()`` was taken."""
        for name in self.kept:
            if name not in state_dict:
                raise UsageError(f"{type(self).__name__}.set_state_dict: {name!r} is missing, got "
                                 f"{sorted(state_dict)}")
            setattr(self, name, state_dict[name])

    set_dict = set_state_dict


class NoamDecay(LRScheduler):
    """Linear growth over the warm-up, then falling with the root of the epoch."""

    def __init__(self, d_model, warmup_steps, learning_rate=1.0, last_epoch=-1, verbose=False):
        self.d_model, self.warmup_steps = d_model, warmup_steps
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self):
        """d_model^-0.5 * min(epoch^-0.5, epoch * warmup^-1.5)."""
        falling = self.last_epoch ** -0.5 if self.last_epoch else 1.0
        return self.base_lr * self.d_model ** -0.5 * min(falling, self.warmup_steps ** -1.5 * self.last_epoch)


class PiecewiseDecay(LRScheduler):
    """values[i] before epoch boundaries[i], the last value beyond."""

    def __init__(self, boundaries, values, last_epoch=-1, verbose=False):
        if len(values) != len(boundaries) + 1:
            raise UsageError(f"PiecewiseDecay: expected one value more than boundaries, got {len(values)} values "
                             f"for {len(boundaries)} boundaries")
        self.boundaries, self.values = list(boundaries), list(values)
        super().__init__(values[0], last_epoch, verbose)

    def get_lr(self):
        """The value of the piece."""
        passed = (i for i, boundary in enumerate(self.boundaries) if self.last_epoch < boundary)
        return float(self.values[next(passed, len(self.boundaries))])


class _ByGamma(LRScheduler):
    """Those with one factor ``gamma``."""

    def __init__(self, learning_rate, gamma, last_epoch=-1, verbose=False):
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)


class NaturalExpDecay(_ByGamma):
    """Falls by e^-gamma every epoch."""

    def get_lr(self):
        """base * e^(-gamma * epoch)."""
        return self.base_lr * math.exp(-self.gamma * self.last_epoch)


class InverseTimeDecay(_ByGamma):
    """Falls with the inverse of the epoch."""

    def get_lr(self):
        """base / (1 + gamma * epoch)."""
        return self.base_lr / (1 + self.gamma * self.last_epoch)


class ExponentialDecay(_ByGamma):
    """Multiplied by gamma every epoch."""

    def get_lr(self):
        """base * gamma^epoch."""
        return self.base_lr * self.gamma ** self.last_epoch


class PolynomialDecay(LRScheduler):
    """From the rate to end_lr over decay_steps; with ``cycle`` anew, over longer periods."""

    def __init__(self, learning_rate, decay_steps, end_lr=0.0001, power=1.0, cycle=False, last_epoch=-1,
                 verbose=False):
        self.decay_steps, self.end_lr, self.power, self.cycle = decay_steps, end_lr, power, cycle
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self):
        """(base - end) * (1 - epoch / length)^power + end."""
        if self.cycle:
            epoch, length = self.last_epoch, self.decay_steps * max(1, math.ceil(self.last_epoch / self.decay_steps))
        else:
            epoch, length = min(self.last_epoch, self.decay_steps), self.decay_steps
        return (self.base_lr - self.end_lr) * (1 - epoch / length) ** self.power + self.end_lr


class LinearWarmup(LRScheduler):
    """From start_lr to end_lr over warmup_steps, then a number or another scheduler, which then starts."""

    def __init__(self, learning_rate, warmup_steps, start_lr, end_lr, last_epoch=-1, verbose=False):
        if not end_lr > start_lr:
            raise UsageError(f"LinearWarmup: end_lr {end_lr} must be above start_lr {start_lr}")
        self.learning_rate = learning_rate if isinstance(learning_rate, LRScheduler) else checked_rate("LinearWarmup",
                                                                                                       learning_rate)
        self.warmup_steps, self.start_lr, self.end_lr = warmup_steps, start_lr, end_lr
        super().__init__(start_lr, last_epoch, verbose)

    def get_lr(self):
        """The line, then what follows."""
        if self.last_epoch < self.warmup_steps:
            return (self.end_lr - self.start_lr) * self.last_epoch / self.warmup_steps + self.start_lr
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.step(self.last_epoch - self.warmup_steps)
            return self.learning_rate()
        return float(self.learning_rate)

    def state_dict(self):
        """With the state of the scheduler that follows."""
        inner = self.learning_rate
        return {**super().state_dict(),
                **({"LinearWarmup_LR": inner.state_dict()} if isinstance(inner, LRScheduler) else {})}

    def set_state_dict(self, state_dict):
        """As ``state_dict`` gave it."""
        super().set_state_dict(state_dict)
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.set_state_dict(state_dict["LinearWarmup_LR"])

    set_dict = set_state_dict


class MultiStepDecay(LRScheduler):
    """Multiplied by gamma at every milestone."""

    def __init__(self, learning_rate, milestones, gamma=0.1, last_epoch=-1, verbose=False):
        if list(milestones) != sorted(set(milestones)):
            raise UsageError(f"MultiStepDecay: expected rising milestones, got {list(milestones)}")
        self.milestones, self.gamma = list(milestones), gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self):
        """base * gamma^(milestones passed)."""
        return self.base_lr * self.gamma ** sum(self.last_epoch >= one for one in self.milestones)


class StepDecay(LRScheduler):
    """Multiplied by gamma every step_size epochs."""

    def __init__(self, learning_rate, step_size, gamma=0.1, last_epoch=-1, verbose=False):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self):
        """base * gamma^(epoch // step_size)."""
        return self.base_lr * self.gamma ** (self.last_epoch // self.step_size)


class LambdaDecay(LRScheduler):
    """The base rate times a function of the epoch."""

    def __init__(self, learning_rate, lr_lambda, last_epoch=-1, verbose=False):
        if not callable(lr_lambda):
            raise UsageError(f"LambdaDecay: lr_lambda must be a function of the epoch, got "
                             f"{type(lr_lambda).__name__}")
        self.lr_lambda = lr_lambda
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self):
        """base * lr_lambda(epoch)."""
        return self.base_lr * self.lr_lambda(self.last_epoch)


class CosineAnnealingDecay(LRScheduler):
    """Half a cosine down to eta_min over T_max epochs, and up again."""

    def __init__(self, learning_rate, T_max, eta_min=0, last_epoch=-1, verbose=False):
        self.T_max, self.eta_min = T_max, float(eta_min)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self):
        """eta_min + (base - eta_min) * (1 + cos(pi * epoch / T_max)) / 2."""
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return self.eta_min + (self.base_lr - self.eta_min) * share


class ReduceOnPlateau(LRScheduler):
    """Multiplied by ``factor`` when a metric has not improved for more than ``patience`` steps."""

    kept = ("cooldown_counter", "best", "num_bad_epochs", "last_epoch", "last_lr")

    def __init__(self, learning_rate, mode="min", factor=0.1, patience=10, threshold=1e-4, threshold_mode="rel",
                 cooldown=0, min_lr=0, epsilon=1e-8, verbose=False):
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs") or not factor < 1:
            raise UsageError(f"ReduceOnPlateau: mode must be 'min' or 'max', threshold_mode 'rel' or 'abs', factor "
                             f"below 1, got {mode!r}, {threshold_mode!r}, {factor!r}")
        self.mode, self.factor, self.patience, self.threshold = mode, factor, patience, threshold
        self.threshold_mode, self.cooldown, self.min_lr, self.epsilon = threshold_mode, cooldown, min_lr, epsilon
        self.cooldown_counter, self.best, self.num_bad_epochs = 0, None, 0
        self.base_lr = self.last_lr = checked_rate("ReduceOnPlateau", learning_rate)
        self.last_epoch, self.verbose = 0, verbose

    def step(self, metrics, epoch=None):
        """Note this step's metric (a number or an array of one)."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        value = float(metrics.item() if hasattr(metrics, "item") else metrics)
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            return
        if self.best is None or self._is_better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.num_bad_epochs > self.patience:
            self._reduce()

    def _reduce(self):
        self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        reduced = max(self.last_lr * self.factor, self.min_lr)
        if self.last_lr - reduced > self.epsilon:
            self.last_lr = reduced
            self._tell()

    def _is_better(self, value):
        margin = self.threshold * (abs(self.best) if self.threshold_mode == "rel" else 1.0)
        return value < self.best - margin if self.mode == "min" else value > self.best + margin
