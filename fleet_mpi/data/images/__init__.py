"""Images in memory: numpy arrays [height, width(, channels)] or Pillow images, and what ``paddle.vision`` does to them.

    kinds               the two kinds of image; the gate to Pillow, which is optional
    functions           ``transforms.functional``: checks arguments, and calls one of the next two
    array_images        the same on arrays, by numpy
    pil_images          the same on Pillow images, by Pillow
    resampling          sizes and values between the pixels of arrays
    transforms          functions as objects that draw their random arguments: geometry and format
    colour_transforms   the same for colours
    loading             image files and bytes to images
    early_functions     ``paddle.dataset.image`` of 1.x

Nothing here knows a Program.
"""
