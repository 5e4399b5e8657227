"""The commonest optimizers for cupy's arrays, each as one pass over memory; same names, arguments and bits as
``update``.

``*_unless`` take a flag ([1], bool) too, and change nothing where it is true: nobody waits to read it. The other rules
run on a device as their references do, one pass per operation.
"""

import numpy as np

from fleet_mpi.kernels.cuda.compiling import fits, launch
from fleet_mpi.kernels.reference import update

NO_FLAG = np.uint64(0)  # a null pointer

SOURCE = r"""
#define RETURN_IF(skip) if (skip && *skip) return

extern "C" __global__ void sgd(real *param, const real *grad, const real *rate, const bool *skip, long long size)
{
    RETURN_IF(skip);
    const real step = *rate;
    FOR_MY_ELEMENTS(i, size)
        param[i] -= step * grad[i];
}

extern "C" __global__ void momentum(real *param, const real *grad, real *velocity, const real *rate, real mu,
                                    int nesterov, real l2, real rescale, const bool *skip, long long size)
{
    RETURN_IF(skip);
    const real step = *rate;
    FOR_MY_ELEMENTS(i, size) {
        const real p = param[i], g = rescale * grad[i] + l2 * p, v = velocity[i] * mu + g;
        velocity[i] = v;
        param[i] = p - (nesterov ? (g + mu * v) * step : step * v);
    }
}

extern "C" __global__ void adam(real *param, const real *grad, real *moment1, real *moment2, const real *beta1_pow,
                                const real *beta2_pow, const real *rate, real beta1, real rest1, real beta2,
                                real rest2, real epsilon, real coeff, const bool *skip, long long size)
{
    RETURN_IF(skip);
    const real one = 1, root = sqrt(one - *beta2_pow), step = *rate * root / (one - *beta1_pow);
    const real small = epsilon * root, keep = one - *rate * coeff;
    FOR_MY_ELEMENTS(i, size) {
        const real g = grad[i], m1 = moment1[i] * beta1 + rest1 * g, m2 = moment2[i] * beta2 + rest2 * g * g;
        moment1[i] = m1;
        moment2[i] = m2;
        param[i] = param[i] * keep - step * (m1 / (sqrt(m2) + small));
    }
}

extern "C" __global__ void move_powers(real *beta1_pow, real *beta2_pow, real beta1, real beta2, const bool *skip,
                                       long long size)
{
    RETURN_IF(skip);
    FOR_MY_ELEMENTS(i, size) {
        beta1_pow[i] *= beta1;
        beta2_pow[i] *= beta2;
    }
}
"""


def sgd(param, grad, rate):
    """One product and one difference per element."""
    if fits(param, grad):
        _sgd(param, grad, rate, NO_FLAG)
    else:
        update.sgd.reference(param, grad, rate)


def sgd_unless(param, grad, rate, skip):
    """One launch."""
    if fits(param, grad):
        _sgd(param, grad, rate, skip)
    else:
        update.sgd_unless.reference(param, grad, rate, skip)


def _sgd(param, grad, rate, skip):
    launch(SOURCE, "sgd", param.size, param, grad, _one(rate, param), skip)


def momentum(param, grad, velocity, rate, mu, nesterov, l2, rescale):
    """Five array accesses per element."""
    if fits(param, grad, velocity):
        _momentum(param, grad, velocity, rate, mu, nesterov, l2, rescale, NO_FLAG)
    else:
        update.momentum.reference(param, grad, velocity, rate, mu, nesterov, l2, rescale)


def momentum_unless(param, grad, velocity, rate, mu, nesterov, l2, rescale, skip):
    """One launch."""
    if fits(param, grad, velocity):
        _momentum(param, grad, velocity, rate, mu, nesterov, l2, rescale, skip)
    else:
        update.momentum_unless.reference(param, grad, velocity, rate, mu, nesterov, l2, rescale, skip)


def _momentum(param, grad, velocity, rate, mu, nesterov, l2, rescale, skip):
    kind = param.dtype.type
    launch(SOURCE, "momentum", param.size, param, grad, velocity, _one(rate, param), kind(mu), np.int32(bool(nesterov)),
           kind(l2), kind(rescale), skip)


def adam(param, grad, moment1, moment2, beta1_pow, beta2_pow, rate, beta1, beta2, epsilon, coeff):
    """Seven array accesses per element; the beta powers move on after all threads have read them."""
    if not fits(param, grad, moment1, moment2):
        update.adam.reference(param, grad, moment1, moment2, beta1_pow, beta2_pow, rate, beta1, beta2, epsilon, coeff)
        return
    _adam(param, grad, moment1, moment2, beta1_pow, beta2_pow, rate, beta1, beta2, epsilon, coeff, NO_FLAG)
    beta1_pow *= beta1
    beta2_pow *= beta2


def adam_unless(param, grad, moment1, moment2, beta1_pow, beta2_pow, rate, beta1, beta2, epsilon, coeff, skip):
    """Two launches: the second moves the beta powers on."""
    if not fits(param, grad, moment1, moment2) or not fits(beta1_pow, beta2_pow):
        update.adam_unless.reference(param, grad, moment1, moment2, beta1_pow, beta2_pow, rate, beta1, beta2, epsilon,
                                     coeff, skip)
        return
    _adam(param, grad, moment1, moment2, beta1_pow, beta2_pow, rate, beta1, beta2, epsilon, coeff, skip)
    kind = beta1_pow.dtype.type
    launch(SOURCE, "move_powers", beta1_pow.size, beta1_pow, beta2_pow, kind(beta1), kind(beta2), skip)


def _adam(param, grad, moment1, moment2, beta1_pow, beta2_pow, rate, beta1, beta2, epsilon, coeff, skip):
    kind = param.dtype.type
    ones = [_one(array, param) for array in (beta1_pow, beta2_pow, rate)]
    launch(SOURCE, "adam", param.size, param, grad, moment1, moment2, *ones, kind(beta1), kind(1) - kind(beta1),
           kind(beta2), kind(1) - kind(beta2), kind(epsilon), kind(coeff), skip)


def _one(array, param):
    """A [1] array in the parameter's type."""
    return array.astype(param.dtype, copy=False)
