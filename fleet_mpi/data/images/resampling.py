"""Pixels between pixels: arrays of another size, and values at any place of an array.

An output pixel is a weighted sum of a few input pixels along each axis (*taps*). Pixel centres lie at .5; beyond the
edge the edge pixel is repeated. No smoothing before shrinking but by ``area``, as OpenCV does.
"""

import numpy as np

from fleet_mpi.errors import UsageError, nearest


def _linear(distance):
    return np.maximum(0.0, 1.0 - np.abs(distance))


def _cubic(distance, sharpness=-0.75):
    d = np.abs(distance)
    near = ((sharpness + 2) * d - (sharpness + 3)) * d * d + 1
    far = ((d - 5) * d + 8) * d * sharpness - 4 * sharpness
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def _lanczos(distance):
    return np.where(np.abs(distance) < 4, np.sinc(distance) * np.sinc(distance / 4), 0.0)


# How many pixels to each side count, and with which weight at a distance.
_KERNELS = {"bilinear": (1, _linear), "area": (1, _linear), "bicubic": (2, _cubic), "lanczos": (4, _lanczos)}
METHODS = ("nearest", *_KERNELS)


def resize(image, height, width, method="bilinear"):
    """The image with this height and width, in its own dtype; whole numbers are rounded."""
    require_method("resize", method, METHODS)
    made = _along(_along(image, 0, height, method), 1, width, method)
    return as_dtype(made, image.dtype)


def sample(image, y, x, method):
    """The values at pixel coordinates ``y``, ``x`` (centres at .5), float; the edge is repeated outside."""
    require_method("rotate", method, ("nearest", "bilinear", "bicubic"))
    if method == "nearest":
        return image[_within(np.floor(y), image.shape[0]), _within(np.floor(x), image.shape[1])]
    reach, kernel = _KERNELS[method]
    y, x = y - 0.5, x - 0.5
    total = 0.0
    for down in range(1 - reach, reach + 1):
        for right in range(1 - reach, reach + 1):
            row, column = np.floor(y) + down, np.floor(x) + right
            weight = kernel(y - row) * kernel(x - column)
            pixels = image[_within(row, image.shape[0]), _within(column, image.shape[1])]
            total = total + pixels * weight.reshape(weight.shape + (1,) * (image.ndim - 2))
    return total


def taps(source, target, method):
    """For each of ``target`` pixels: the places [target, taps] among ``source`` pixels, and their weights."""
    scale = source / target
    if method == "nearest":
        return _within(np.floor(np.arange(target) * scale), source)[:, None], np.ones((target, 1))
    if method == "area" and scale > 1:
        return _area_taps(source, target, scale)
    reach, kernel = _KERNELS[method]
    centres = (np.arange(target) + 0.5) * scale - 0.5
    places = np.floor(centres)[:, None] + np.arange(1 - reach, reach + 1)
    weights = kernel(centres[:, None] - places)
    return _within(places, source), weights / weights.sum(axis=1, keepdims=True)


def as_dtype(values, dtype):
    """Values in a dtype; for whole numbers rounded, and held within its range."""
    if values.dtype == dtype:
        return values
    if np.issubdtype(dtype, np.integer):
        bounds = np.iinfo(dtype)
        values = np.clip(np.rint(values), bounds.min, bounds.max)
    return values.astype(dtype)


def require_method(who, method, known):
    """Refuse an interpolation that arrays do not have."""
    if method not in known:
        raise UsageError(f"{who}: no interpolation {method!r} for numpy arrays; {nearest(method, known)}")


def _area_taps(source, target, scale):
    """Every pixel counts as much as it is covered."""
    starts = np.arange(target)[:, None] * scale
    places = np.floor(starts) + np.arange(int(np.ceil(scale)) + 1)
    covered = np.minimum(starts + scale, places + 1) - np.maximum(starts, places)
    return _within(places, source), np.maximum(covered, 0.0) / scale


def _along(image, axis, size, method):
    if image.shape[axis] == size:
        return image
    places, weights = taps(image.shape[axis], size, method)
    moved = np.moveaxis(image, axis, 0)
    if method == "nearest":
        return np.moveaxis(moved[places[:, 0]], 0, axis)
    # float32 holds bytes with their weights to well below half a step.
    weights = weights.astype(np.float64 if image.dtype.itemsize > 4 else np.float32)
    columns = weights.T.reshape(weights.shape[::-1] + (1,) * (image.ndim - 1))
    return np.moveaxis(sum(moved[place] * weight for place, weight in zip(places.T, columns)), 0, axis)


def _within(places, size):
    return np.clip(places, 0, size - 1).astype(np.intp)
