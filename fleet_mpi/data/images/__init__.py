"""Images in memory: numpy arrays [height, width(, channels)] or Pillow images, and what ``paddle.vision`` does to them.

``functions`` takes either kind and hands it to ``array_images`` (numpy only) or ``pil_images`` (Pillow's own calls);
``transforms`` and ``colour_transforms`` are its functions as objects that draw their random arguments. Pillow is
optional: ``kinds`` is the gate to it. Nothing here knows a Program.
"""
