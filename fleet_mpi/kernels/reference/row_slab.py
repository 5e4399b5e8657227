"""Rows of a growing table by slot: copies, and one kernel for each rule.

A row of ``slab`` ([rows, stride], contiguous) is its values, then its states, one behind the other, then padding; the
width of the values is that of the rows that come or go. ``slots`` (int32) are inside the slab and unique, the caller
has seen to it; the slot NOT_STORED is left alone by copies. Formulas and bits are those of ``update`` on a table of
fixed height. Knows no ids.
"""

from fleet_mpi.arrays import module_of
from fleet_mpi.kernels import kernel
from fleet_mpi.kernels.reference import update


@kernel
def gather(slab, slots, out):
    """out[i] = the values of slots[i]; slots may repeat."""
    there = slots >= 0
    out[there] = slab[slots[there], :out.shape[1]]


@kernel
def begin(slab, slots, values, rest):
    """The rows ``slots`` become ``values[i]``, then ``rest``, which has the states of a row that begins."""
    width = values.shape[1]
    slab[slots, :width] = values
    slab[slots, width:] = rest


@kernel
def move(slab, moves):
    """Copy row moves[i, 0] to row moves[i, 1], one after the other."""
    for i in range(moves.shape[0]):
        slab[moves[i, 1:]] = slab[moves[i, :1]]


@kernel
def sgd(slab, slots, grad, rate):
    """``update.sgd``; no state."""
    _on_rows(update.sgd, slab, slots, grad, 0, rate)


@kernel
def momentum(slab, slots, grad, rate, mu, nesterov, rescale):
    """``update.momentum`` on all rows, the gradient being zero outside ``slots``; state: the velocity."""
    values, velocity = _parts(slab, grad.shape[1], 2)
    update.momentum.reference(values, _spread(values, slots, grad), velocity, rate, mu, nesterov, 0.0, rescale)


@kernel
def adagrad(slab, slots, grad, rate, epsilon):
    """``update.adagrad``; state: the moment."""
    _on_rows(update.adagrad, slab, slots, grad, 1, rate, epsilon)


@kernel
def adagrad_rowwise(slab, slots, grad, rate, epsilon):
    """Adagrad with one moment for a row: moment += mean(grad^2), added from left to right in float64."""
    width, kind = grad.shape[1], slab.dtype
    wide = grad.astype("float64")
    total = wide[:, 0] * wide[:, 0]
    for j in range(1, width):
        total = total + wide[:, j] * wide[:, j]
    moment = slab[slots, width] + (total / width).astype(kind)
    slab[slots, width] = moment
    root = module_of(slab).sqrt(moment) + epsilon
    slab[slots, :width] = slab[slots, :width] - rate.astype(kind) * grad / root[:, None]


@kernel
def adam(slab, slots, grad, beta1_pow, beta2_pow, rate, beta1, beta2, epsilon, coeff, lazy):
    """``update.adam`` on the rows ``slots`` (lazy), or on all, the gradient being zero elsewhere; states: moments."""
    rest = (beta1_pow, beta2_pow, rate, beta1, beta2, epsilon, coeff)
    if lazy:
        _on_rows(update.adam, slab, slots, grad, 2, *rest)
    else:
        values, moment1, moment2 = _parts(slab, grad.shape[1], 3)
        update.adam.reference(values, _spread(values, slots, grad), moment1, moment2, *rest)


@kernel
def ftrl(slab, slots, grad, rate, l1, l2, lr_power):
    """``update.ftrl``; states: squared, linear."""
    _on_rows(update.ftrl, slab, slots, grad, 2, rate, l1, l2, lr_power)


def _on_rows(rule, slab, slots, grad, states, *rest):
    """Run a rule on copies of some rows and put them back."""
    copies = [part[slots] for part in _parts(slab, grad.shape[1], 1 + states)]
    rule.reference(copies[0], grad, *copies[1:], *rest)
    for part, rows in zip(_parts(slab, grad.shape[1], 1 + states), copies, strict=True):
        part[slots] = rows


def _parts(slab, width, count):
    """Values and states of all rows: views."""
    return [slab[:, place * width:(place + 1) * width] for place in range(count)]


def _spread(values, slots, grad):
    dense = module_of(values).zeros(values.shape, values.dtype)
    dense[slots] = grad
    return dense
