"""What loss scaling asks of every gradient: is it finite, and what is it without the scale."""

from fleet_mpi.arrays import module_of
from fleet_mpi.kernels import kernel


@kernel
def unscale(x, inverse, found, out):
    """out = x inverse[0] (rounded to x's type first); found[0] becomes True if an element of x is not finite."""
    xp = module_of(x)
    found[...] |= ~xp.isfinite(x).all()
    xp.multiply(x, inverse.astype(x.dtype), out=out)
