"""``fluid.nets``: networks of a few layers each."""

from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.program.layers.nets import glu, img_conv_group, scaled_dot_product_attention, simple_img_conv_pool
from fleet_mpi.program.layers.sequence_nets import sequence_conv_pool

__getattr__ = _missing_name("paddle.fluid.nets", globals())
