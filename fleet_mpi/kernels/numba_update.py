"""The optimizers for host arrays: each dense rule is one pass over memory.

Same names, arguments and bits as ``update.py``. A rule is a function of scalars (``_adam``), so that the
dense loop and the loop over rows share it; small functions are inlined and the loops vectorise.
"""

import numpy as np

from fleet_mpi.kernels.numba_settings import compiled
from fleet_mpi.kernels.update import FTRL_SHIFT

LEAF_LEVEL = 12  # the largest part of the tree of squares that is added up in a buffer: 4096 elements


@compiled
def sgd(param, grad, rate):
    """One product and one difference per element."""
    rate = param.dtype.type(rate[0])
    for i in range(param.size):
        param[i] -= rate * grad[i]


@compiled
def sgd_rows(param, ids, grad, rate):
    """sgd row by row."""
    rate = param.dtype.type(rate[0])
    for k in range(ids.size):
        row = ids[k]
        for j in range(param.shape[1]):
            param[row, j] -= rate * grad[k, j]


@compiled
def momentum(param, grad, velocity, rate, mu, nesterov, l2, rescale):
    """Two loops: the choice of Nesterov's step would otherwise be made at every element."""
    kind = param.dtype.type
    rate, mu, l2, rescale = kind(rate[0]), kind(mu), kind(l2), kind(rescale)
    if nesterov:
        for i in range(param.size):
            param[i], velocity[i] = _nesterov(param[i], grad[i], velocity[i], rate, mu, l2, rescale)
    else:
        for i in range(param.size):
            param[i], velocity[i] = _momentum(param[i], grad[i], velocity[i], rate, mu, l2, rescale)


@compiled
def momentum_rows(param, ids, grad, velocity, rate, mu, nesterov, l2, rescale):
    """Row by row with the dense rule, a line of zeros standing for the gradient of the rows not in ``ids``."""
    place = _places(ids, param.shape[0])
    zero = np.zeros(param.shape[1], grad.dtype)
    for row in range(param.shape[0]):
        line = grad[place[row]] if place[row] >= 0 else zero
        momentum(param[row], line, velocity[row], rate, mu, nesterov, l2, rescale)


@compiled
def _momentum(p, g, v, rate, mu, l2, rescale):
    v = mu * v + (rescale * g + l2 * p)
    return p - rate * v, v


@compiled
def _nesterov(p, g, v, rate, mu, l2, rescale):
    g = rescale * g + l2 * p
    v = mu * v + g
    return p - (g + mu * v) * rate, v


@compiled
def lars(param, grad, velocity, rate, param_square, grad_square, mu, coeff, decay, epsilon, rescale):
    """Momentum with the local rate folded into the velocity."""
    local = np.float64(rate[0])
    param_norm, grad_norm = np.sqrt(param_square[0]), np.sqrt(grad_square[0]) * abs(rescale)
    if decay > 0 and param_norm > 0 and grad_norm > 0:
        local = local * coeff * param_norm / (grad_norm + decay * param_norm + epsilon)
    kind = param.dtype.type
    local, mu, decay, rescale = kind(local), kind(mu), kind(decay), kind(rescale)
    for i in range(param.size):
        velocity[i] = mu * velocity[i] + local * (rescale * grad[i] + decay * param[i])
        param[i] -= velocity[i]


@compiled
def adagrad(param, grad, moment, rate, epsilon):
    """Five array accesses per element."""
    kind = param.dtype.type
    rate, epsilon = kind(rate[0]), kind(epsilon)
    for i in range(param.size):
        param[i], moment[i] = _adagrad(param[i], grad[i], moment[i], rate, epsilon)


@compiled
def adagrad_rows(param, ids, grad, moment, rate, epsilon):
    """adagrad row by row."""
    kind = param.dtype.type
    rate, epsilon = kind(rate[0]), kind(epsilon)
    for k in range(ids.size):
        row = ids[k]
        for j in range(param.shape[1]):
            param[row, j], moment[row, j] = _adagrad(param[row, j], grad[k, j], moment[row, j], rate, epsilon)


@compiled
def _adagrad(p, g, m, rate, epsilon):
    m = m + g * g
    return p - rate * g / (np.sqrt(m) + epsilon), m


@compiled
def decayed_adagrad(param, grad, moment, rate, decay, epsilon):
    """Five array accesses per element."""
    kind = param.dtype.type
    rate, epsilon, decay = kind(rate[0]), kind(epsilon), kind(decay)
    rest = kind(1) - decay
    for i in range(param.size):
        g = grad[i]
        moment[i] = decay * moment[i] + rest * g * g
        param[i] -= rate * g / (np.sqrt(moment[i]) + epsilon)


@compiled
def adam(param, grad, moment1, moment2, beta1_pow, beta2_pow, rate, beta1, beta2, epsilon, coeff):
    """Seven array accesses per element."""
    kind = param.dtype.type
    step, small, keep = _adam_scales(kind(beta1_pow[0]), kind(beta2_pow[0]), kind(rate[0]), kind(epsilon), kind(coeff))
    b1, b2 = kind(beta1), kind(beta2)
    for i in range(param.size):
        param[i], moment1[i], moment2[i] = _adam(
            param[i], grad[i], moment1[i], moment2[i], step, small, keep, b1, b2)
    beta1_pow[0] *= beta1_pow.dtype.type(beta1)
    beta2_pow[0] *= beta2_pow.dtype.type(beta2)


@compiled
def adam_rows(param, ids, grad, moment1, moment2, beta1_pow, beta2_pow, rate, beta1, beta2, epsilon, coeff, lazy):
    """adam row by row; where not lazy a line of zeros stands for the gradient of the rows not in ``ids``."""
    kind = param.dtype.type
    step, small, keep = _adam_scales(kind(beta1_pow[0]), kind(beta2_pow[0]), kind(rate[0]), kind(epsilon), kind(coeff))
    b1, b2 = kind(beta1), kind(beta2)
    if lazy:
        for k in range(ids.size):
            row = ids[k]
            _adam_line(param[row], grad[k], moment1[row], moment2[row], step, small, keep, b1, b2)
    else:
        place = _places(ids, param.shape[0])
        zero = np.zeros(param.shape[1], grad.dtype)
        for row in range(param.shape[0]):
            line = grad[place[row]] if place[row] >= 0 else zero
            _adam_line(param[row], line, moment1[row], moment2[row], step, small, keep, b1, b2)
    beta1_pow[0] *= beta1_pow.dtype.type(beta1)
    beta2_pow[0] *= beta2_pow.dtype.type(beta2)


@compiled
def _adam_line(param, grad, moment1, moment2, step, small, keep, b1, b2):
    for j in range(param.size):
        param[j], moment1[j], moment2[j] = _adam(
            param[j], grad[j], moment1[j], moment2[j], step, small, keep, b1, b2)


@compiled
def _adam(p, g, m1, m2, step, small, keep, b1, b2):
    one = type(b1)(1)
    m1 = b1 * m1 + (one - b1) * g
    m2 = b2 * m2 + (one - b2) * g * g
    return p * keep - step * (m1 / (np.sqrt(m2) + small)), m1, m2


@compiled
def _adam_scales(beta1_pow, beta2_pow, rate, epsilon, coeff):
    one = type(rate)(1)
    root = np.sqrt(one - beta2_pow)
    return rate * root / (one - beta1_pow), epsilon * root, one - rate * coeff


@compiled
def adamax(param, grad, moment, inf_norm, beta1_pow, rate, beta1, beta2, epsilon):
    """Seven array accesses per element."""
    kind = param.dtype.type
    step = kind(rate[0]) / (kind(1) - kind(beta1_pow[0]))
    b1, b2, epsilon = kind(beta1), kind(beta2), kind(epsilon)
    rest = kind(1) - b1
    for i in range(param.size):
        moment[i] = b1 * moment[i] + rest * grad[i]
        size, known = abs(grad[i]), b2 * inf_norm[i] + epsilon
        # Written so that a NaN in either wins, as numpy's maximum has it.
        inf_norm[i] = known if size <= known or known != known else size
        param[i] -= step * (moment[i] / inf_norm[i])
    beta1_pow[0] *= beta1_pow.dtype.type(beta1)


@compiled
def adadelta(param, grad, squared_grad, squared_update, rate, rho, epsilon):
    """Seven array accesses per element."""
    kind = param.dtype.type
    rate, rho, epsilon = kind(rate[0]), kind(rho), kind(epsilon)
    rest = kind(1) - rho
    for i in range(param.size):
        g = grad[i]
        squared_grad[i] = rho * squared_grad[i] + rest * g * g
        update = np.sqrt((squared_update[i] + epsilon) / (squared_grad[i] + epsilon)) * g
        squared_update[i] = rho * squared_update[i] + rest * update * update
        param[i] -= rate * update


@compiled
def rmsprop(param, grad, mean_square, moment, rate, rho, epsilon, momentum):
    """Seven array accesses per element."""
    kind = param.dtype.type
    rate, rho, epsilon, mu = kind(rate[0]), kind(rho), kind(epsilon), kind(momentum)
    rest = kind(1) - rho
    for i in range(param.size):
        g = grad[i]
        mean_square[i] = rho * mean_square[i] + rest * g * g
        moment[i] = mu * moment[i] + rate * g / np.sqrt(mean_square[i] + epsilon)
        param[i] -= moment[i]


@compiled
def centered_rmsprop(param, grad, mean_square, moment, mean_grad, rate, rho, epsilon, momentum):
    """Nine array accesses per element."""
    kind = param.dtype.type
    rate, rho, epsilon, mu = kind(rate[0]), kind(rho), kind(epsilon), kind(momentum)
    rest = kind(1) - rho
    for i in range(param.size):
        g = grad[i]
        mean_square[i] = rho * mean_square[i] + rest * g * g
        mean_grad[i] = rho * mean_grad[i] + rest * g
        spread = mean_square[i] - mean_grad[i] * mean_grad[i] + epsilon
        moment[i] = mu * moment[i] + rate * g / np.sqrt(spread)
        param[i] -= moment[i]


@compiled
def ftrl(param, grad, squared, linear, rate, l1, l2, lr_power):
    """Square roots for the usual power of -1/2; ``pow`` does not vectorise."""
    kind = param.dtype.type
    rate, power = kind(rate[0]), kind(-lr_power)
    l1, twice_l2 = kind(l1) + kind(FTRL_SHIFT), kind(2) * (kind(l2) + kind(FTRL_SHIFT))
    if lr_power == -0.5:
        for i in range(param.size):
            total = squared[i] + grad[i] * grad[i]
            new_root, old_root = np.sqrt(total), np.sqrt(squared[i])
            param[i], linear[i] = _ftrl(param[i], grad[i], linear[i], new_root, old_root, rate, l1, twice_l2)
            squared[i] = total
    else:
        for i in range(param.size):
            total = squared[i] + grad[i] * grad[i]
            new_root, old_root = total ** power, squared[i] ** power
            param[i], linear[i] = _ftrl(param[i], grad[i], linear[i], new_root, old_root, rate, l1, twice_l2)
            squared[i] = total


@compiled
def ftrl_rows(param, ids, grad, squared, linear, rate, l1, l2, lr_power):
    """The dense rule row by row."""
    for k in range(ids.size):
        row = ids[k]
        ftrl(param[row], grad[k], squared[row], linear[row], rate, l1, l2, lr_power)


@compiled
def _ftrl(p, g, linear, new_root, old_root, rate, l1, twice_l2):
    linear = linear + (g - (new_root - old_root) / rate * p)
    shrunk = (l1 if linear > 0 else -l1) - linear
    moved = shrunk / (new_root / rate + twice_l2)
    return (moved if abs(linear) > l1 else type(p)(0)), linear


@compiled
def lamb_direction(param, grad, moment1, moment2, beta1_pow, beta2_pow, direction, beta1, beta2, epsilon, decay):
    """Seven array accesses per element."""
    kind = param.dtype.type
    one = kind(1)
    rest1, rest2 = one - kind(beta1_pow[0]), one - kind(beta2_pow[0])
    b1, b2, epsilon, decay = kind(beta1), kind(beta2), kind(epsilon), kind(decay)
    for i in range(param.size):
        g = grad[i]
        moment1[i] = b1 * moment1[i] + (one - b1) * g
        moment2[i] = b2 * moment2[i] + (one - b2) * g * g
        direction[i] = moment1[i] / rest1 / (np.sqrt(moment2[i] / rest2) + epsilon) + decay * param[i]
    beta1_pow[0] *= beta1_pow.dtype.type(beta1)
    beta2_pow[0] *= beta2_pow.dtype.type(beta2)


@compiled
def lamb_step(param, direction, rate, param_square, direction_square):
    """One product and one difference per element."""
    scale = np.float64(rate[0])
    if param_square[0] > 0 and direction_square[0] > 0:
        scale = scale * (np.sqrt(param_square[0]) / np.sqrt(direction_square[0]))
    scale = param.dtype.type(scale)
    for i in range(param.size):
        param[i] -= scale * direction[i]


@compiled
def _places(ids, height):
    """For each row of the table its position in ``ids``, or -1."""
    place = np.full(height, -1, np.int32)
    for k in range(ids.size):
        place[ids[k]] = k
    return place


def square_sum(x):
    """Complete blocks of 4096 in a buffer, then up the tree as soon as both halves are there."""
    nodes = square_nodes(x, 0)
    total = 0.0
    for _, _, value in reversed(nodes):
        total = value + total
    return np.array([total])


def square_nodes(x, start):
    """One pass; the list is at most twice the tree's depth long."""
    line = x.reshape(-1)
    levels, indices, values = np.empty(128, np.int64), np.empty(128, np.int64), np.empty(128)
    count = _nodes(line, start, levels, indices, values)
    return list(zip(levels[:count].tolist(), indices[:count].tolist(), values[:count].tolist(), strict=True))


@compiled
def _nodes(line, start, levels, indices, values):
    buffer = np.empty(1 << LEAF_LEVEL)
    end = start + line.size
    position = start
    count = 0
    while position < end:
        level = LEAF_LEVEL
        while (position & (1 << level) - 1) != 0 or position + (1 << level) > end:
            level -= 1
        value = _leaf(line[position - start:position - start + (1 << level)], buffer)
        position += 1 << level
        index = (position >> level) - 1
        while count and index & 1 and levels[count - 1] == level:
            count -= 1
            value = values[count] + value
            level += 1
            index >>= 1
        levels[count], indices[count], values[count] = level, index, value
        count += 1
    return count


@compiled
def _leaf(line, buffer):
    """The tree over a power of two of elements: eight at a time in registers, then halving the buffer."""
    size = line.size
    if size >= 8:
        size //= 8
        for i in range(size):
            k = 8 * i
            first = (_square(line[k]) + _square(line[k + 1])) + (_square(line[k + 2]) + _square(line[k + 3]))
            last = (_square(line[k + 4]) + _square(line[k + 5])) + (_square(line[k + 6]) + _square(line[k + 7]))
            buffer[i] = first + last
    else:
        for i in range(size):
            buffer[i] = _square(line[i])
    while size > 1:
        size //= 2
        for i in range(size):
            buffer[i] = buffer[2 * i] + buffer[2 * i + 1]
    return buffer[0]


@compiled
def _square(x):
    wide = np.float64(x)
    return wide * wide
