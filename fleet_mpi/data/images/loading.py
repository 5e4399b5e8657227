"""Image files and their bytes as images: Pillow images, or arrays where the backend is cv2."""

import io

import numpy as np

from fleet_mpi.data import image_backend
from fleet_mpi.data.images.kinds import pillow
from fleet_mpi.data.ppm_files import ppm_array


def image_load(path, backend=None):
    """An image file as a Pillow image, or as an array in the order blue, green, red where the backend is cv2, as
    OpenCV's.

    The file is decoded by Pillow in both cases; with the backend tensor the array is in the order red, green, blue.
    """
    chosen = image_backend.one_of("image_load", backend, image_backend.ALL)
    if chosen == "pil":
        return pillow("image_load").open(path)
    pixels = coloured_array(path)
    return pixels[..., ::-1].copy() if chosen == "cv2" else pixels


def coloured_image(path):
    """An image file as a Pillow image of red, green and blue; the file is closed."""
    with pillow("reading an image file").open(path) as image:
        return image.convert("RGB")


def coloured_array(path):
    """An image file as an array [height, width, 3] of red, green and blue."""
    return np.array(coloured_image(path))


def decoded(content, backend):
    """The bytes of an image file as a Pillow image (pil) or an array; arrays of PPM files need no Pillow."""
    if backend == "cv2" and content[:2] == b"P6":
        return ppm_array(content)
    image = pillow("decoding an image").open(io.BytesIO(content))
    return image if backend == "pil" else np.array(image)
