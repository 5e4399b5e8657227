"""Loss scaling: gradients checked and unscaled, zeroed after a bad step, and the scale of the next step."""

from fleet_mpi.arrays import module_of
from fleet_mpi.kernels import kernel

LARGEST = 3.4e38  # a float32 above this is infinite: the scale does not grow beyond it


@kernel
def unscale(x, inverse, found, out):
    """out = x inverse[0] (rounded to x's type first); found[0] becomes True if an element of x is not finite."""
    xp = module_of(x)
    found[...] |= ~xp.isfinite(x).all()
    xp.multiply(x, inverse.astype(x.dtype), out=out)


@kernel
def zero_if(x, found, out):
    """out = 0 where found[0] is true, else x."""
    xp = module_of(x)
    if out is not x:
        xp.copyto(out, x)
    xp.copyto(out, 0, where=found)


@kernel
def unscale_all(found, scale, arrays, outs):
    """Bind every ``out`` = its array / scale[0]; found[0] is whether an element of some array is not finite."""
    def run():
        inverse = 1.0 / scale
        found.fill(False)
        for array, out in zip(arrays, outs):
            unscale(array, inverse, found, out)
    return run


@kernel
def zero_all_if(found, arrays, outs):
    """Bind every ``out`` = 0 where found[0] is true, else its array."""
    def run():
        for array, out in zip(arrays, outs):
            zero_if(array, found, out)
    return run


@kernel
def next_scale(found, scale, good, bad, new_scale, new_good, new_bad, grow_every, shrink_every, growth, shrinkage):
    """Count a good or bad step; after enough in a row the scale grows, or shrinks but not below 1, and counts restart.

    All arrays are [1]; the products are made in float64, then rounded to the scale's type.
    """
    xp = module_of(found)
    good_now, bad_now = xp.where(found, 0, good + 1), xp.where(found, bad + 1, 0)
    grows, shrinks = good_now == grow_every, bad_now == shrink_every
    wide = scale.astype("float64")
    grown = xp.where(wide * growth < LARGEST, wide * growth, wide)
    new_scale[...] = xp.where(shrinks, xp.maximum(wide * shrinkage, 1.0), xp.where(grows, grown, wide))
    new_good[...] = xp.where(grows, 0, good_now)
    new_bad[...] = xp.where(shrinks, 0, bad_now)
