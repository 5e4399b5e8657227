"""The library that scripts ask to read images with: kept, and without effect on the data sets here."""

from fleet_mpi.errors import UsageError

_chosen = "pil"


def set_image_backend(backend):
    """Note a choice: pil, cv2 or tensor."""
    global _chosen
    if backend not in ("pil", "cv2", "tensor"):
        raise UsageError(f"set_image_backend: expected pil, cv2 or tensor, got {backend!r}")
    _chosen = backend


def get_image_backend():
    """The choice noted last."""
    return _chosen
