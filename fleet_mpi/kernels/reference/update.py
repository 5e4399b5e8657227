"""The arithmetic of the optimizers, in place: one kernel per rule, and ``*_rows`` for some rows of a table.

Arrays are lines (1-D, contiguous), tables [height, width]; ids are unique and inside the table, the
caller has seen to it. ``rate``, beta powers and sums of squares are arrays of shape [1] and stay on
their device. Every rule is element by element, so slices give the bits of the whole; a numba version
keeps the order of operations written here. Scalars are rounded to the parameter's dtype first, as a
typed language would. Knows no optimizers by name: ``update_rules`` does.
"""

from fleet_mpi.arrays import module_of, to_host
from fleet_mpi.kernels import kernel

FTRL_SHIFT = 1e-10  # the original adds it to l1 and l2


@kernel
def sgd(param, grad, rate):
    """param -= rate grad."""
    param -= _cast(rate, param) * grad


@kernel
def momentum(param, grad, velocity, rate, mu, nesterov, l2, rescale):
    """velocity = mu velocity + g with g = rescale grad + l2 param; then a step along it, or ahead of it."""
    rate = _cast(rate, param)
    gradient = rescale * grad + l2 * param
    velocity *= mu
    velocity += gradient
    param -= (gradient + mu * velocity) * rate if nesterov else rate * velocity


@kernel
def lars(param, grad, velocity, rate, param_square, grad_square, mu, coeff, decay, epsilon, rescale):
    """Momentum whose rate grows with the ratio of the norms of the whole parameter and gradient."""
    local_rate = _lars_rate(param, rate, param_square, grad_square, coeff, decay, epsilon, rescale)
    velocity *= mu
    velocity += local_rate * (rescale * grad + decay * param)
    param -= velocity


@kernel
def adagrad(param, grad, moment, rate, epsilon):
    """moment += grad^2; param -= rate grad / (sqrt(moment) + epsilon)."""
    moment += grad * grad
    param -= _cast(rate, param) * grad / (module_of(param).sqrt(moment) + epsilon)


@kernel
def decayed_adagrad(param, grad, moment, rate, decay, epsilon):
    """Adagrad whose moment forgets: moment = decay moment + (1 - decay) grad^2."""
    moment *= decay
    moment += _complement(decay, param) * grad * grad
    param -= _cast(rate, param) * grad / (module_of(param).sqrt(moment) + epsilon)


@kernel
def adam(param, grad, moment1, moment2, beta1_pow, beta2_pow, rate, beta1, beta2, epsilon, coeff):
    """Adam, after param *= 1 - rate coeff (AdamW's decay; 0 for none); the beta powers move on afterwards."""
    xp = module_of(param)
    step, small, keep = _adam_scales(param, beta1_pow, beta2_pow, rate, epsilon, coeff)
    _move_moments(param, grad, moment1, moment2, beta1, beta2)
    param *= keep
    param -= step * (moment1 / (xp.sqrt(moment2) + small))
    beta1_pow *= beta1
    beta2_pow *= beta2


@kernel
def adamax(param, grad, moment, inf_norm, beta1_pow, rate, beta1, beta2, epsilon):
    """Adam with the decayed maximum of |grad| in place of the second moment."""
    xp = module_of(param)
    moment *= beta1
    moment += _complement(beta1, param) * grad
    inf_norm *= beta2
    inf_norm += epsilon
    xp.maximum(abs(grad), inf_norm, out=inf_norm)
    param -= _cast(rate, param) / (1.0 - _cast(beta1_pow, param)) * (moment / inf_norm)
    beta1_pow *= beta1


@kernel
def adadelta(param, grad, squared_grad, squared_update, rate, rho, epsilon):
    """A step of the size of the recent steps' root mean square, times ``rate``."""
    xp = module_of(param)
    rest = _complement(rho, param)
    squared_grad *= rho
    squared_grad += rest * grad * grad
    update = xp.sqrt((squared_update + epsilon) / (squared_grad + epsilon)) * grad
    squared_update *= rho
    squared_update += rest * update * update
    param -= _cast(rate, param) * update


@kernel
def rmsprop(param, grad, mean_square, moment, rate, rho, epsilon, momentum):
    """A step divided by the root of the decayed mean of grad^2, with momentum."""
    mean_square *= rho
    mean_square += _complement(rho, param) * grad * grad
    moment *= momentum
    moment += _cast(rate, param) * grad / module_of(param).sqrt(mean_square + epsilon)
    param -= moment


@kernel
def centered_rmsprop(param, grad, mean_square, moment, mean_grad, rate, rho, epsilon, momentum):
    """rmsprop divided by the root of the variance: mean of grad^2 less the mean's square."""
    rest = _complement(rho, param)
    mean_square *= rho
    mean_square += rest * grad * grad
    mean_grad *= rho
    mean_grad += rest * grad
    spread = mean_square - mean_grad * mean_grad + epsilon
    moment *= momentum
    moment += _cast(rate, param) * grad / module_of(param).sqrt(spread)
    param -= moment


@kernel
def ftrl(param, grad, squared, linear, rate, l1, l2, lr_power):
    """Follow the regularised leader: the parameter is a function of the two accumulators."""
    xp = module_of(param)
    rate = _cast(rate, param)
    l1, twice_l2 = _ftrl_shrinks(l1, l2, param)
    total = squared + grad * grad
    if lr_power == -0.5:
        new_root, old_root = xp.sqrt(total), xp.sqrt(squared)
    else:
        new_root, old_root = total ** -lr_power, squared ** -lr_power
    linear += grad - (new_root - old_root) / rate * param
    shrunk = xp.where(linear > 0, l1, -l1) - linear
    param[...] = xp.where(abs(linear) > l1, shrunk / (new_root / rate + twice_l2), xp.zeros_like(param))
    squared[...] = total


@kernel
def lamb_direction(param, grad, moment1, moment2, beta1_pow, beta2_pow, direction, beta1, beta2, epsilon, decay):
    """Fill ``direction`` with Adam's corrected step plus decay param; the beta powers move on afterwards."""
    xp = module_of(param)
    _move_moments(param, grad, moment1, moment2, beta1, beta2)
    first = moment1 / (1.0 - _cast(beta1_pow, param))
    second = moment2 / (1.0 - _cast(beta2_pow, param))
    direction[...] = first / (xp.sqrt(second) + epsilon) + decay * param
    beta1_pow *= beta1
    beta2_pow *= beta2


@kernel
def lamb_step(param, direction, rate, param_square, direction_square):
    """param -= rate |param| / |direction| direction, the norms being those of the whole variable."""
    xp = module_of(param)
    usable = (param_square > 0) & (direction_square > 0)
    divisor = xp.where(usable, xp.sqrt(direction_square), xp.ones_like(direction_square))
    trust = xp.where(usable, xp.sqrt(param_square) / divisor, xp.ones_like(direction_square))
    param -= (rate.astype("float64") * trust).astype(param.dtype) * direction


@kernel
def dgc_select(grad, u, v, count, mu, nesterov, out):
    """Deep gradient compression: move the ``count`` largest of v to ``out``, zero elsewhere, and clear them in u and v.

    u = mu u + grad and v += u come first (nesterov: u = mu (u + grad), v += u + grad). Of equal sizes the
    earlier wins.
    """
    xp = module_of(grad)
    if nesterov:
        u += grad
        u *= mu
        v += u
        v += grad
    else:
        u *= mu
        u += grad
        v += u
    size = abs(v)
    border = xp.partition(size, size.shape[0] - count)[size.shape[0] - count]
    above, at_border = size > border, size == border
    chosen = above | (at_border & (xp.cumsum(at_border) <= count - above.sum()))
    out[...] = xp.where(chosen, v, xp.zeros_like(v))
    u[...] = xp.where(chosen, xp.zeros_like(u), u)
    v[...] = xp.where(chosen, xp.zeros_like(v), v)


def unless(skip, changed, run):
    """Call ``run``, then put the arrays it changed back where ``skip`` ([1], bool) is true, without reading it."""
    xp, before = module_of(skip), [array.copy() for array in changed]
    run()
    for array, old in zip(changed, before, strict=True):
        xp.copyto(array, old, where=skip)


@kernel
def sgd_unless(param, grad, rate, skip):
    """sgd, or nothing where skip[0] is true."""
    unless(skip, [param], lambda: sgd.reference(param, grad, rate))


@kernel
def momentum_unless(param, grad, velocity, rate, mu, nesterov, l2, rescale, skip):
    """momentum, or nothing where skip[0] is true."""
    unless(skip, [param, velocity],
           lambda: momentum.reference(param, grad, velocity, rate, mu, nesterov, l2, rescale))


@kernel
def adam_unless(param, grad, moment1, moment2, beta1_pow, beta2_pow, rate, beta1, beta2, epsilon, coeff, skip):
    """adam, or nothing where skip[0] is true."""
    changed = [param, moment1, moment2, beta1_pow, beta2_pow]
    unless(skip, changed, lambda: adam.reference(param, grad, *changed[1:], rate, beta1, beta2, epsilon, coeff))


@kernel
def sgd_rows(param, ids, grad, rate):
    """sgd on the rows ``ids``."""
    _on_rows(sgd, param, ids, grad, (), rate)


@kernel
def adagrad_rows(param, ids, grad, moment, rate, epsilon):
    """adagrad on the rows ``ids``."""
    _on_rows(adagrad, param, ids, grad, (moment,), rate, epsilon)


@kernel
def ftrl_rows(param, ids, grad, squared, linear, rate, l1, l2, lr_power):
    """ftrl on the rows ``ids``."""
    _on_rows(ftrl, param, ids, grad, (squared, linear), rate, l1, l2, lr_power)


@kernel
def momentum_rows(param, ids, grad, velocity, rate, mu, nesterov, l2, rescale):
    """momentum on all rows, the gradient being zero outside ``ids``."""
    momentum.reference(param, _spread(param, ids, grad), velocity, rate, mu, nesterov, l2, rescale)


@kernel
def adam_rows(param, ids, grad, moment1, moment2, beta1_pow, beta2_pow, rate, beta1, beta2, epsilon, coeff, lazy):
    """adam on the rows ``ids`` (lazy), or on all rows, the gradient being zero outside ``ids``."""
    rest = (beta1_pow, beta2_pow, rate, beta1, beta2, epsilon, coeff)
    if lazy:
        _on_rows(adam, param, ids, grad, (moment1, moment2), *rest)
    else:
        adam.reference(param, _spread(param, ids, grad), moment1, moment2, *rest)


@kernel
def square_sum(x):
    """The sum of squares as a float64 array of shape [1], added up as a binary tree over the positions.

    A missing right half counts as zero. ``square_nodes`` of any cut of ``x`` join to the same bits.
    """
    xp = module_of(x)
    line = x.reshape(-1).astype("float64")
    line = line * line
    if not line.shape[0]:
        return xp.zeros((1,), "float64")
    while line.shape[0] > 1:
        if line.shape[0] % 2:
            line = xp.concatenate([line, xp.zeros((1,), "float64")])
        line = line[0::2] + line[1::2]
    return line


@kernel
def square_nodes(x, start):
    """The part of the tree of ``square_sum`` over a slice that begins at position ``start`` of its variable.

    Returns a list of (level, index, sum): node ``index`` of ``level`` covers 2**level positions from index * 2**level.
    """
    line = x.reshape(-1)
    nodes = []
    position, end = start, start + line.shape[0]
    while position < end:
        level = (end - position).bit_length() - 1
        if position:
            level = min(level, (position & -position).bit_length() - 1)
        piece = line[position - start:position - start + (1 << level)]
        nodes.append((level, position >> level, float(to_host(square_sum.reference(piece))[0])))
        position += 1 << level
    return nodes


def _on_rows(rule, param, ids, grad, states, *rest):
    """Run a rule on copies of some rows and put them back."""
    tables = (param, *states)
    copies = [table[ids] for table in tables]
    rule.reference(copies[0], grad, *copies[1:], *rest)
    for table, rows in zip(tables, copies, strict=True):
        table[ids] = rows


def _spread(param, ids, grad):
    dense = module_of(param).zeros_like(param)
    dense[ids] = grad
    return dense


def _cast(one, param):
    """A [1] array in the parameter's dtype, so that a float64 rate does not widen float32 arithmetic."""
    return one.astype(param.dtype, copy=False)


def _complement(share, param):
    """1 - share, both rounded to the parameter's dtype, as a Python number that mixes with any array."""
    kind = param.dtype.type
    return float(kind(1) - kind(share))


def _move_moments(param, grad, moment1, moment2, beta1, beta2):
    moment1 *= beta1
    moment1 += _complement(beta1, param) * grad
    moment2 *= beta2
    moment2 += _complement(beta2, param) * grad * grad


def _adam_scales(param, beta1_pow, beta2_pow, rate, epsilon, coeff):
    rate = _cast(rate, param)
    root = module_of(param).sqrt(1.0 - _cast(beta2_pow, param))
    return rate * root / (1.0 - _cast(beta1_pow, param)), epsilon * root, 1.0 - rate * coeff


def _ftrl_shrinks(l1, l2, param):
    kind = param.dtype.type
    return float(kind(l1) + kind(FTRL_SHIFT)), float(kind(2) * (kind(l2) + kind(FTRL_SHIFT)))


def _lars_rate(param, rate, param_square, grad_square, coeff, decay, epsilon, rescale):
    """rate coeff |p| / (|g| + decay |p| + epsilon); the plain rate where a norm or the decay is zero."""
    xp = module_of(param)
    rate = rate.astype("float64")
    param_norm, grad_norm = xp.sqrt(param_square), xp.sqrt(grad_square) * abs(rescale)
    usable = (param_norm > 0) & (grad_norm > 0)
    if decay <= 0:
        usable = xp.zeros_like(usable)
    divisor = xp.where(usable, grad_norm + decay * param_norm + epsilon, xp.ones_like(param_norm))
    return xp.where(usable, rate * coeff * param_norm / divisor, rate).astype(param.dtype)
