"""The commonest optimizers for cupy's arrays, each as one pass over memory; same names, arguments and bits as
``update``.

The other rules run on a device as their references do, one pass per operation.
"""

import numpy as np

from fleet_mpi.kernels.cuda.compiling import fits, launch
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
extern "C" __global__ void sgd(real *param, const real *grad, const real *rate, long long size)
{
    const real step = *rate;
    FOR_MY_ELEMENTS(i, size)
        sgd_element(param[i], grad[i], step);
}

extern "C" __global__ void momentum(real *param, const real *grad, real *velocity, const real *rate, real mu,
                                    int nesterov, real l2, real rescale, long long size)
{
    const real step = *rate;
    FOR_MY_ELEMENTS(i, size)
        momentum_element(param[i], grad[i], velocity[i], step, mu, nesterov, l2, rescale);
}

extern "C" __global__ void adam(real *param, const real *grad, real *moment1, real *moment2, const real *beta1_pow,
                                const real *beta2_pow, const real *rate, real beta1, real rest1, real beta2,
                                real rest2, real epsilon, real coeff, long long size)
{
    const AdamScales scales(*beta1_pow, *beta2_pow, *rate, epsilon, coeff);
    FOR_MY_ELEMENTS(i, size)
        adam_element(param[i], grad[i], moment1[i], moment2[i], scales, beta1, rest1, beta2, rest2);
}
"""


def sgd(param, grad, rate):
    """One product and one difference per element."""
    if not fits(param, grad):
        update.sgd.reference(param, grad, rate)
        return
    launch(SOURCE, "sgd", param.size, param, grad, _one(rate, param))


def momentum(param, grad, velocity, rate, mu, nesterov, l2, rescale):
    """Five array accesses per element."""
    if not fits(param, grad, velocity):
        update.momentum.reference(param, grad, velocity, rate, mu, nesterov, l2, rescale)
        return
    kind = param.dtype.type
    launch(SOURCE, "momentum", param.size, param, grad, velocity, _one(rate, param), kind(mu), np.int32(bool(nesterov)),
           kind(l2), kind(rescale))


def adam(param, grad, moment1, moment2, beta1_pow, beta2_pow, rate, beta1, beta2, epsilon, coeff):
    """Seven array accesses per element; the beta powers move on after all threads have read them."""
    if not fits(param, grad, moment1, moment2):
        update.adam.reference(param, grad, moment1, moment2, beta1_pow, beta2_pow, rate, beta1, beta2, epsilon, coeff)
        return
    kind = param.dtype.type
    ones = [_one(array, param) for array in (beta1_pow, beta2_pow, rate)]
    launch(SOURCE, "adam", param.size, param, grad, moment1, moment2, *ones, kind(beta1), kind(1) - kind(beta1),
           kind(beta2), kind(1) - kind(beta2), kind(epsilon), kind(coeff))
    beta1_pow *= beta1
    beta2_pow *= beta2


def _one(array, param):
    """A [1] array in the parameter's type."""
    return array.astype(param.dtype, copy=False)
