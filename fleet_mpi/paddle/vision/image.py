"""``paddle.vision.image``: the kind of image that is loaded."""

from fleet_mpi.data.image_backend import get_image_backend, set_image_backend
from fleet_mpi.data.images.loading import image_load
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.vision.image", globals())
