"""Image classifiers as layers (``paddle.vision.models``), one family a module.

Names of sublayers are those of the original, so that saved states fit by path. A layer makes its parameters in the
default programs, like any other; there are no pretrained weights, since nothing is ever fetched.
"""
