"""The commonest optimizers for cupy's arrays, each as one pass over memory; same names, arguments and bits as
``update``.

``*_unless`` take a flag ([1], bool) too, and change nothing where it is true: nobody waits to read it. The other rules
run on a device as their references do, one pass per operation.
"""

import numpy as np

from fleet_mpi.kernels.cuda.compiling import fits, launch, or_null
from fleet_mpi.kernels.reference import update

# The arithmetic for one element, for the kernels over one parameter here and over many in ``update_groups``.
ELEMENTS = r"""
__device__ inline void sgd_element(real &param, real grad, real rate) { param -= rate * grad; }

__device__ inline void momentum_element(real &param, real grad, real &velocity, real rate, real mu, int nesterov,
                                        real l2, real rescale)
{
    const real p = param, g = rescale * grad + l2 * p, v = velocity * mu + g;
    velocity = v;
    param = p - (nesterov ? (g + mu * v) * rate : rate * v);
}

// What Adam's elements share: step, epsilon and decay.
struct AdamScales {
    real step, small, keep;
    __device__ AdamScales(real beta1_pow, real beta2_pow, real rate, real epsilon, real coeff)
    {
        const real one = 1, root = sqrt(one - beta2_pow);
        step = rate * root / (one - beta1_pow);
        small = epsilon * root;
        keep = one - rate * coeff;
    }
};

__device__ inline void adam_element(real &param, real grad, real &moment1, real &moment2, const AdamScales &scales,
                                    real beta1, real rest1, real beta2, real rest2)
{
    const real m1 = moment1 * beta1 + rest1 * grad, m2 = moment2 * beta2 + rest2 * grad * grad;
    moment1 = m1;
    moment2 = m2;
    param = param * scales.keep - scales.step * (m1 / (sqrt(m2) + scales.small));
}
"""

SOURCE = ELEMENTS + r"""
#define RETURN_IF(skip) if (skip && *skip) return

extern "C" __global__ void sgd(real *param, const real *grad, const real *rate, const bool *skip, long long size)
{
    RETURN_IF(skip);
    const real step = *rate;
    FOR_MY_ELEMENTS(i, size)
        sgd_element(param[i], grad[i], step);
}

extern "C" __global__ void momentum(real *param, const real *grad, real *velocity, const real *rate, real mu,
                                    int nesterov, real l2, real rescale, const bool *skip, long long size)
{
    RETURN_IF(skip);
    const real step = *rate;
    FOR_MY_ELEMENTS(i, size)
        momentum_element(param[i], grad[i], velocity[i], step, mu, nesterov, l2, rescale);
}

extern "C" __global__ void adam(real *param, const real *grad, real *moment1, real *moment2, const real *beta1_pow,
                                const real *beta2_pow, const real *rate, real beta1, real rest1, real beta2,
                                real rest2, real epsilon, real coeff, const bool *skip, long long size)
{
    RETURN_IF(skip);
    const AdamScales scales(*beta1_pow, *beta2_pow, *rate, epsilon, coeff);
    FOR_MY_ELEMENTS(i, size)
        adam_element(param[i], grad[i], moment1[i], moment2[i], scales, beta1, rest1, beta2, rest2);
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
        _sgd(param, grad, rate, or_null(None))
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
        _momentum(param, grad, velocity, rate, mu, nesterov, l2, rescale, or_null(None))
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
    _adam(param, grad, moment1, moment2, beta1_pow, beta2_pow, rate, beta1, beta2, epsilon, coeff, or_null(None))
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
