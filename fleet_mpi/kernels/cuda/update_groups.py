"""Updates of many parameters by one launch.

Results are those of the kernels of ``update``, to the bit.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fleet_mpi.kernels.cuda import update
from fleet_mpi.kernels.cuda.compiling import THREADS, fits, function, or_null
from fleet_mpi.kernels.cuda.tables import MINE, bound_over

SOURCE = update.ELEMENTS + MINE + r"""
#define RETURN_IF(skip) if (skip && *skip) return

extern "C" __global__ void sgd_group(const long long *table, const int *pieces, const bool *skip)
{
    RETURN_IF(skip);
    const Mine<3> mine(table, pieces);
    real *param = mine.array(0);
    const real *grad = mine.array(1), step = *mine.array(2);
    FOR_MY_PIECE(i, mine)
        sgd_element(param[i], grad[i], step);
}

extern "C" __global__ void momentum_group(const long long *table, const int *pieces, real mu, int nesterov, real l2,
                                          real rescale, const bool *skip)
{
    RETURN_IF(skip);
    const Mine<4> mine(table, pieces);
    real *param = mine.array(0), *velocity = mine.array(2);
    const real *grad = mine.array(1), step = *mine.array(3);
    FOR_MY_PIECE(i, mine)
        momentum_element(param[i], grad[i], velocity[i], step, mu, nesterov, l2, rescale);
}

extern "C" __global__ void adam_group(const long long *table, const int *pieces, real beta1, real rest1, real beta2,
                                      real rest2, real epsilon, real coeff, const bool *skip)
{
    RETURN_IF(skip);
    const Mine<7> mine(table, pieces);
    real *param = mine.array(0), *moment1 = mine.array(2), *moment2 = mine.array(3);
    const real *grad = mine.array(1);
    const AdamScales scales(*mine.array(4), *mine.array(5), *mine.array(6), epsilon, coeff);
    FOR_MY_PIECE(i, mine)
        adam_element(param[i], grad[i], moment1[i], moment2[i], scales, beta1, rest1, beta2, rest2);
}

// Adam's beta powers move on when all blocks have read them.
extern "C" __global__ void move_powers(const long long *table, real beta1, real beta2, int count,
                                       const bool *skip)
{
    RETURN_IF(skip);
    FOR_MY_ELEMENTS(i, count) {
        *(real *)table[i * 8 + 4] *= beta1;
        *(real *)table[i * 8 + 5] *= beta2;
    }
}
"""


def grouped(kernel, calls):
    """One call for many of a kernel of ``update``, given by their arguments; None where they do not go together.

    The arrays of different calls must lie apart.
    """
    rule = _RULES.get(kernel)
    if rule is None or len(calls) < 2:
        return None
    skips = [call[-1] if rule.has_flag else None for call in calls]
    lines = [call[:rule.arrays] for call in calls]
    numbers = {call[rule.arrays:len(call) - rule.has_flag] for call in calls}
    if len(numbers) > 1 or any(skip is not skips[0] for skip in skips):
        return None
    if len({line[0].dtype for line in lines}) > 1 or not all(fits(*line) and line[0].size for line in lines):
        return None
    return rule.bind(lines, skips[0], *numbers.pop())


class _Rule(NamedTuple):
    """How many of a kernel's first arguments are arrays, the function that binds a group, whether a flag comes last."""

    arrays: int
    bind: Callable
    has_flag: bool


def _bind(name, lines, skip, *numbers):
    """The launch of function ``name`` over all lines of arrays: a parameter and what belongs to it."""
    return bound_over(SOURCE, name, lines, *numbers, or_null(skip))


def _bind_sgd(lines, skip):
    return _bind("sgd_group", lines, skip)


def _bind_momentum(lines, skip, mu, nesterov, l2, rescale):
    kind = lines[0][0].dtype.type
    return _bind("momentum_group", lines, skip, kind(mu), np.int32(bool(nesterov)), kind(l2), kind(rescale))


def _bind_adam(lines, skip, beta1, beta2, epsilon, coeff):
    kind = lines[0][0].dtype.type
    main = _bind("adam_group", lines, skip, kind(beta1), kind(1) - kind(beta1), kind(beta2), kind(1) - kind(beta2),
                 kind(epsilon), kind(coeff))
    after, blocks = function(SOURCE, "move_powers", lines[0][0]), (-(-len(lines) // THREADS),)
    arguments = main.args[2][0], kind(beta1), kind(beta2), np.int32(len(lines)), or_null(skip)

    def run():
        main()
        after(blocks, (THREADS,), arguments)
    return run


_RULES = {kernel: _Rule(arrays, bind, has_flag) for arrays, bind, *kernels in (
    (3, _bind_sgd, update.sgd, update.sgd_unless),
    (4, _bind_momentum, update.momentum, update.momentum_unless),
    (7, _bind_adam, update.adam, update.adam_unless)) for has_flag, kernel in enumerate(kernels)}
