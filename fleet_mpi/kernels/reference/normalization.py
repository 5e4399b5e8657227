"""Batch norm and layer norm, forward and backward, with an optional relu in the same pass.

Each kernel is bound once to its arrays and gives back a function without arguments that computes.
Batch norm sees any array as [outer, channel, inner], so NCHW, NHWC and [N, C] are one case each.
Variances are the biased ones, in the running statistics too, as in the original.
Data and their gradients may be float16; statistics and weights then are float32, as all arithmetic is.
"""

from fleet_mpi.arrays import module_of
from fleet_mpi.errors import ProgramError
from fleet_mpi.kernels import kernel
from fleet_mpi.kernels.widening import wide


def channel_view_shape(shape, axis):
    """(outer, channels, inner) of an array whose channels lie on ``axis``."""
    axis %= len(shape)
    outer = inner = 1
    for extent in shape[:axis]:
        outer *= extent
    for extent in shape[axis + 1:]:
        inner *= extent
    return outer, shape[axis], inner


def row_view_shape(shape, begin_axis):
    """(rows, columns) of an array that is normalised over all axes from ``begin_axis`` on."""
    rows = columns = 1
    for extent in shape[:begin_axis]:
        rows *= extent
    for extent in shape[begin_axis:]:
        columns *= extent
    return rows, columns


def check_channels(what, channels, **vectors):
    """Refuse per-channel arrays of another length, by name."""
    for name, vector in vectors.items():
        if vector is not None and vector.size != channels:
            raise ProgramError(f"{what} over {channels} channels: expected {name} of that length, "
                               f"got shape {tuple(vector.shape)}")


@kernel
def batch_norm_forward(x, scale, bias, out, mean, inv_std, running_mean, running_var, momentum, epsilon, relu, axis):
    """Bind training's forward pass: ``out``, this batch's ``mean`` and ``inv_std``, and the running statistics.

    Running values become ``momentum * running + (1 - momentum) * batch``; ``relu`` clips ``out`` at zero.
    """
    shape = channel_view_shape(x.shape, axis)
    check_channels("batch norm", shape[1], scale=scale, bias=bias, mean=mean, inv_std=inv_std,
                   running_mean=running_mean, running_var=running_var)

    def run():
        values = wide(x).reshape(shape)
        batch_mean = values.mean(axis=(0, 2))
        centred = values - batch_mean[None, :, None]
        variance = (centred * centred).mean(axis=(0, 2))
        mean[...] = batch_mean
        inv_std[...] = 1 / (variance + epsilon) ** 0.5
        running_mean[...] = running_mean * momentum + batch_mean * (1 - momentum)
        running_var[...] = running_var * momentum + variance * (1 - momentum)
        made = centred * (inv_std * scale)[None, :, None] + bias[None, :, None]
        out[...] = _clipped(made, relu).reshape(out.shape)
    return run


@kernel
def batch_norm_inference(x, scale, bias, mean, variance, out, inv_std, epsilon, relu, axis):
    """Bind the forward pass by given statistics; ``inv_std`` (or None) keeps what a backward pass needs."""
    shape = channel_view_shape(x.shape, axis)
    check_channels("batch norm", shape[1], scale=scale, bias=bias, mean=mean, variance=variance, inv_std=inv_std)

    def run():
        inverse = 1 / (variance + epsilon) ** 0.5
        if inv_std is not None:
            inv_std[...] = inverse
        made = (wide(x).reshape(shape) - mean[None, :, None]) * (inverse * scale)[None, :, None] + bias[None, :, None]
        out[...] = _clipped(made, relu).reshape(out.shape)
    return run


@kernel
def batch_norm_backward(x, dout, out, scale, mean, inv_std, dx, dscale, dbias, frozen, axis):
    """Bind the gradients. ``out`` is the forward's result where a relu was fused, else None.

    ``frozen``: the statistics were given, so they pass no gradient. ``dx`` may be ``dout`` itself.
    """
    shape = channel_view_shape(x.shape, axis)
    check_channels("batch norm", shape[1], scale=scale, mean=mean, inv_std=inv_std, dscale=dscale, dbias=dbias)
    count = shape[0] * shape[2]

    def run():
        given = wide(dout).reshape(shape)
        if out is not None:
            given = given * (out.reshape(shape) > 0)
        normal = (wide(x).reshape(shape) - mean[None, :, None]) * inv_std[None, :, None]
        dbias[...] = given.sum(axis=(0, 2))
        dscale[...] = (given * normal).sum(axis=(0, 2))
        if not frozen:
            given = given - dbias[None, :, None] / count - normal * (dscale[None, :, None] / count)
        dx[...] = (given * (scale * inv_std)[None, :, None]).reshape(dx.shape)
    return run


@kernel
def layer_norm_forward(x, scale, bias, out, mean, inv_std, epsilon, begin_axis):
    """Bind ``out`` and the ``mean`` and ``inv_std`` of every row; ``scale`` and ``bias`` may be None."""
    shape = row_view_shape(x.shape, begin_axis)
    check_channels("layer norm", shape[1], scale=scale, bias=bias)
    check_channels("layer norm's statistics", shape[0], mean=mean, inv_std=inv_std)

    def run():
        values = wide(x).reshape(shape)
        row_mean = values.mean(axis=1)
        centred = values - row_mean[:, None]
        inverse = 1 / ((centred * centred).mean(axis=1) + epsilon) ** 0.5
        mean[...] = row_mean.reshape(mean.shape)
        inv_std[...] = inverse.reshape(inv_std.shape)
        made = centred * inverse[:, None]
        if scale is not None:
            made = made * scale.reshape(1, -1)
        if bias is not None:
            made = made + bias.reshape(1, -1)
        out[...] = made.reshape(out.shape)
    return run


@kernel
def layer_norm_backward(x, dout, scale, mean, inv_std, dx, dscale, dbias, begin_axis):
    """Bind the gradients; ``scale``, ``dscale`` and ``dbias`` may be None."""
    shape = row_view_shape(x.shape, begin_axis)
    check_channels("layer norm", shape[1], scale=scale, dscale=dscale, dbias=dbias)

    def run():
        given = wide(dout).reshape(shape)
        normal = (wide(x).reshape(shape) - mean.reshape(-1, 1)) * inv_std.reshape(-1, 1)
        if dbias is not None:
            dbias[...] = given.sum(axis=0).reshape(dbias.shape)
        if dscale is not None:
            dscale[...] = (given * normal).sum(axis=0).reshape(dscale.shape)
        if scale is not None:
            given = given * scale.reshape(1, -1)
        along = (given * normal).mean(axis=1)[:, None]
        made = (given - given.mean(axis=1)[:, None] - normal * along) * inv_std.reshape(-1, 1)
        dx[...] = made.reshape(dx.shape)
    return run


def _clipped(values, relu):
    return module_of(values).maximum(values, 0) if relu else values
