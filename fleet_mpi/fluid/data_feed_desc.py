"""``fluid.data_feed_desc``: the description of slots that AsyncExecutor read, known by name only."""

from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.fluid.data_feed_desc", globals(), refused={
    "DataFeedDesc": "slots are not described by a file; give the variables to DatasetFactory().create_dataset(...) with "
                    "set_use_var"})
