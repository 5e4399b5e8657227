"""The optimizers as plain float64 loops, written from their definitions and apart from ``update_rules``.

Each takes parameter, gradient, rate and a dictionary of states by op slot, and returns the new
parameter; the states are replaced.
"""

import numpy as np

from fleet_mpi.kernels.reference import random


def sgd(p, g, lr, s):
    return p - lr * g


def dpsgd(p, g, lr, s, batch_size=0.999, sigma=1e-8, seed=0):
    """The number that is added is drawn as everywhere: by counter, from the seed and the step."""
    noise = np.empty(1, "float32")
    random.normal.reference(noise, random.key_of(seed, "dpsgd"), int(s["Step"][0]), 0, 0.0, sigma)
    s["Step"] = s["Step"] + 1
    return p - lr * (g + float(noise[0]) / batch_size)


def momentum(p, g, lr, s, mu=0.9, use_nesterov=False):
    s["Velocity"] = mu * s["Velocity"] + g
    return p - lr * (g + mu * s["Velocity"]) if use_nesterov else p - lr * s["Velocity"]


def lars_momentum(p, g, lr, s, mu=0.9, lars_coeff=0.001, lars_weight_decay=0.0005):
    p_norm, g_norm = np.sqrt((p ** 2).sum()), np.sqrt((g ** 2).sum())
    if lars_weight_decay > 0:
        lr = lr * lars_coeff * p_norm / (g_norm + lars_weight_decay * p_norm)
    s["Velocity"] = mu * s["Velocity"] + lr * (g + lars_weight_decay * p)
    return p - s["Velocity"]


def adagrad(p, g, lr, s, epsilon=1e-6):
    s["Moment"] = s["Moment"] + g * g
    return p - lr * g / (np.sqrt(s["Moment"]) + epsilon)


def decayed_adagrad(p, g, lr, s, decay=0.95, epsilon=1e-6):
    s["Moment"] = decay * s["Moment"] + (1 - decay) * g * g
    return p - lr * g / (np.sqrt(s["Moment"]) + epsilon)


def _moments(g, s, beta1, beta2):
    """Bias-corrected moments; the powers move on."""
    s["Moment1"] = beta1 * s["Moment1"] + (1 - beta1) * g
    s["Moment2"] = beta2 * s["Moment2"] + (1 - beta2) * g * g
    corrected = s["Moment1"] / (1 - s["Beta1Pow"]), s["Moment2"] / (1 - s["Beta2Pow"])
    s["Beta1Pow"], s["Beta2Pow"] = s["Beta1Pow"] * beta1, s["Beta2Pow"] * beta2
    return corrected


def adam(p, g, lr, s, beta1=0.9, beta2=0.999, epsilon=1e-8):
    first, second = _moments(g, s, beta1, beta2)
    return p - lr * first / (np.sqrt(second) + epsilon)


def adamw(p, g, lr, s, coeff=0.01, **hypers):
    return adam(p * (1 - lr * coeff), g, lr, s, **hypers)


def adamax(p, g, lr, s, beta1=0.9, beta2=0.999, epsilon=1e-8):
    s["Moment"] = beta1 * s["Moment"] + (1 - beta1) * g
    s["InfNorm"] = np.maximum(abs(g), beta2 * s["InfNorm"] + epsilon)
    out = p - lr / (1 - s["Beta1Pow"]) * s["Moment"] / s["InfNorm"]
    s["Beta1Pow"] = s["Beta1Pow"] * beta1
    return out


def adadelta(p, g, lr, s, rho=0.95, epsilon=1e-6):
    s["AvgSquaredGrad"] = rho * s["AvgSquaredGrad"] + (1 - rho) * g * g
    update = np.sqrt((s["AvgSquaredUpdate"] + epsilon) / (s["AvgSquaredGrad"] + epsilon)) * g
    s["AvgSquaredUpdate"] = rho * s["AvgSquaredUpdate"] + (1 - rho) * update * update
    return p - update


def rmsprop(p, g, lr, s, rho=0.95, epsilon=1e-6, momentum=0.0, centered=False):
    s["MeanSquare"] = rho * s["MeanSquare"] + (1 - rho) * g * g
    spread = s["MeanSquare"]
    if centered:
        s["MeanGrad"] = rho * s["MeanGrad"] + (1 - rho) * g
        spread = spread - s["MeanGrad"] ** 2
    s["Moment"] = momentum * s["Moment"] + lr * g / np.sqrt(spread + epsilon)
    return p - s["Moment"]


def ftrl(p, g, lr, s, l1=0.0, l2=0.0, lr_power=-0.5):
    l1, l2 = l1 + 1e-10, l2 + 1e-10
    old = s["SquaredAccumulator"]
    new = s["SquaredAccumulator"] = old + g * g
    sigma = (new ** -lr_power - old ** -lr_power) / lr
    linear = s["LinearAccumulator"] = s["LinearAccumulator"] + g - sigma * p
    moved = (l1 * np.sign(linear) - linear) / (new ** -lr_power / lr + 2 * l2)
    return np.where(abs(linear) > l1, moved, 0.0)


def lamb(p, g, lr, s, weight_decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-6):
    first, second = _moments(g, s, beta1, beta2)
    r = first / (np.sqrt(second) + epsilon) + weight_decay * p
    return p - lr * np.sqrt((p ** 2).sum()) / np.sqrt((r ** 2).sum()) * r


def dgc_momentum(p, g, lr, s, mu=0.9, use_nesterov=False, rampup_begin_step=0, rampup_step=1, sparsity=(0.999,)):
    now = int(s["current_step"][0])
    s["current_step"] = s["current_step"] + 1
    if now < rampup_begin_step:
        return momentum(p, g, lr, s, mu, use_nesterov)
    period = min(len(sparsity) - 1, (now - rampup_begin_step) * len(sparsity) // rampup_step)
    s["U"] = mu * (s["U"] + g) if use_nesterov else mu * s["U"] + g
    s["V"] = s["V"] + s["U"] + (g if use_nesterov else 0)
    count = max(1, int(g.size * (1 - sparsity[period])))
    largest = np.argsort(-abs(s["V"]).ravel(), kind="stable")[:count]
    chosen = np.zeros(g.size, bool)
    chosen[largest] = True
    chosen = chosen.reshape(g.shape)
    sent = np.where(chosen, s["V"], 0.0)
    s["U"], s["V"] = np.where(chosen, 0.0, s["U"]), np.where(chosen, 0.0, s["V"])
    return p - lr * sent
