"""The optimizers for host arrays: each dense rule is one pass over memory.

Same names, arguments and bits as ``update.py``. A rule is a function of scalars (``_adam``), so that the
dense loop and the loop over rows share it; small functions are inlined and the loops vectorise. Rows are
indexed by unsigned numbers, which spares the test for negative ones, and never by views of a row: those
cost more than the arithmetic (Adam, 16 wide: 29 against 8 million rows a second).
"""

import numpy as np

from fleet_mpi.kernels.numba.compiling import compiled
from fleet_mpi.kernels.reference.update import FTRL_SHIFT

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
        row = np.uint64(ids[k])
        for j in range(param.shape[1]):
            param[row, j] -= rate * grad[k, j]


@compiled
def momentum(param, grad, velocity, rate, mu, nesterov, l2, rescale):
    """Five array accesses per element; the choice of Nesterov's step is made outside the loop."""
    kind = param.dtype.type
    rate, mu, l2, rescale = kind(rate[0]), kind(mu), kind(l2), kind(rescale)
    for i in range(param.size):
        param[i], velocity[i] = _momentum(param[i], grad[i], velocity[i], rate, mu, nesterov, l2, rescale)


@compiled
def momentum_rows(param, ids, grad, velocity, rate, mu, nesterov, l2, rescale):
    """The rows ``ids`` one by one, then what lies between them in long runs."""
    kind = param.dtype.type
    rate, mu, l2, rescale = kind(rate[0]), kind(mu), kind(l2), kind(rescale)
    width = param.shape[1]
    for k in range(ids.size):
        row = np.uint64(ids[k])
        for j in range(width):
            param[row, j], velocity[row, j] = _momentum(
                param[row, j], grad[k, j], velocity[row, j], rate, mu, nesterov, l2, rescale)
    mentioned = _mentioned(ids, param.shape[0])
    p, v = param.reshape(-1), velocity.reshape(-1)
    row = 0
    while row < param.shape[0]:
        end = _end_of_run(mentioned, row)
        run = slice(row * width, end * width)
        _momentum_without_gradient(p[run], v[run], rate, mu, nesterov, l2, rescale)
        row = end + 1


@compiled
def _momentum_without_gradient(param, velocity, rate, mu, nesterov, l2, rescale):
    zero = param.dtype.type(0)
    for i in range(param.size):
        param[i], velocity[i] = _momentum(param[i], zero, velocity[i], rate, mu, nesterov, l2, rescale)


@compiled
def _momentum(p, g, v, rate, mu, nesterov, l2, rescale):
    g = rescale * g + l2 * p
    v = mu * v + g
    return (p - (g + mu * v) * rate if nesterov else p - rate * v), v


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
        row = np.uint64(ids[k])
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
    """The rows ``ids`` one by one; where not lazy, then what lies between them in long runs."""
    kind = param.dtype.type
    step, small, keep = _adam_scales(kind(beta1_pow[0]), kind(beta2_pow[0]), kind(rate[0]), kind(epsilon), kind(coeff))
    b1, b2, width = kind(beta1), kind(beta2), param.shape[1]
    for k in range(ids.size):
        row = np.uint64(ids[k])
        for j in range(width):
            param[row, j], moment1[row, j], moment2[row, j] = _adam(
                param[row, j], grad[k, j], moment1[row, j], moment2[row, j], step, small, keep, b1, b2)
    if not lazy:
        mentioned = _mentioned(ids, param.shape[0])
        p, m1, m2 = param.reshape(-1), moment1.reshape(-1), moment2.reshape(-1)
        row = 0
        while row < param.shape[0]:
            end = _end_of_run(mentioned, row)
            run = slice(row * width, end * width)
            _adam_without_gradient(p[run], m1[run], m2[run], step, small, keep, b1, b2)
            row = end + 1
    beta1_pow[0] *= beta1_pow.dtype.type(beta1)
    beta2_pow[0] *= beta2_pow.dtype.type(beta2)


@compiled
def _adam_without_gradient(param, moment1, moment2, step, small, keep, b1, b2):
    zero = param.dtype.type(0)
    for i in range(param.size):
        param[i], moment1[i], moment2[i] = _adam(param[i], zero, moment1[i], moment2[i], step, small, keep, b1, b2)


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
            param[i], squared[i], linear[i] = _ftrl_by_root(
                param[i], grad[i], squared[i], linear[i], rate, l1, twice_l2)
    else:
        for i in range(param.size):
            param[i], squared[i], linear[i] = _ftrl_by_power(
                param[i], grad[i], squared[i], linear[i], rate, l1, twice_l2, power)


@compiled
def ftrl_rows(param, ids, grad, squared, linear, rate, l1, l2, lr_power):
    """ftrl row by row."""
    kind = param.dtype.type
    rate, power = kind(rate[0]), kind(-lr_power)
    l1, twice_l2 = kind(l1) + kind(FTRL_SHIFT), kind(2) * (kind(l2) + kind(FTRL_SHIFT))
    for k in range(ids.size):
        row = np.uint64(ids[k])
        if lr_power == -0.5:
            for j in range(param.shape[1]):
                param[row, j], squared[row, j], linear[row, j] = _ftrl_by_root(
                    param[row, j], grad[k, j], squared[row, j], linear[row, j], rate, l1, twice_l2)
        else:
            for j in range(param.shape[1]):
                param[row, j], squared[row, j], linear[row, j] = _ftrl_by_power(
                    param[row, j], grad[k, j], squared[row, j], linear[row, j], rate, l1, twice_l2, power)


@compiled
def _ftrl_by_root(p, g, squared, linear, rate, l1, twice_l2):
    total = squared + g * g
    p, linear = _ftrl(p, g, linear, np.sqrt(total), np.sqrt(squared), rate, l1, twice_l2)
    return p, total, linear


@compiled
def _ftrl_by_power(p, g, squared, linear, rate, l1, twice_l2, power):
    total = squared + g * g
    p, linear = _ftrl(p, g, linear, total ** power, squared ** power, rate, l1, twice_l2)
    return p, total, linear


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
def _mentioned(ids, height):
    """Whether a row of the table is among ``ids``, as an array over all rows."""
    mentioned = np.zeros(height, np.bool_)
    for k in range(ids.size):
        mentioned[ids[k]] = True
    return mentioned


@compiled
def _end_of_run(mentioned, row):
    """The first mentioned row from ``row`` on, or the height of the table."""
    while row < mentioned.size and not mentioned[row]:
        row += 1
    return row


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
