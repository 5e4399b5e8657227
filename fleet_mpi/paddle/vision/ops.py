"""``paddle.vision.ops``: convolutions that read where they are told; detection is known by name only."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers.deformable_classes import DeformConv2D, deform_conv2d

__getattr__ = _missing_name("paddle.vision.ops", globals(), refused=dict.fromkeys(
    ("yolo_loss", "yolo_box", "roi_align", "roi_pool", "psroi_pool", "nms", "RoIAlign", "RoIPool", "PSRoIPool"),
    "detection is not built; train such a model elsewhere, or write what is missing of it as a py_func"))
