"""``fluid.data_feed_desc``: descriptions of multislot files."""

from fleet_mpi.data.feed_desc import DataFeedDesc
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.fluid.data_feed_desc", globals())
