"""``paddle.vision``: the choice of an image library; models and transforms of 2.x are not here."""

from fleet_mpi.data.image_backend import get_image_backend, set_image_backend
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.vision", globals())
