"""The kind of image that data sets give unless they are told: Pillow's, or arrays (cv2)."""

from fleet_mpi.errors import UsageError

ALL = ("pil", "cv2", "tensor")
OF_DATA_SETS = ("pil", "cv2")

_chosen = "pil"


def set_image_backend(backend):
    """Choose pil (Pillow images), cv2 (numpy arrays; OpenCV itself is not used) or tensor."""
    global _chosen
    _chosen = _known("set_image_backend", backend, ALL)


def get_image_backend():
    """The choice made last; pil at first."""
    return _chosen


def one_of(who, backend, allowed):
    """A backend given to one call, or the choice made last where it is None."""
    return _known(who, _chosen if backend is None else backend, allowed)


def _known(who, backend, allowed):
    if backend not in allowed:
        raise UsageError(f"{who}: expected {', '.join(allowed[:-1])} or {allowed[-1]}, got {backend!r}")
    return backend
