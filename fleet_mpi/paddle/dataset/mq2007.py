"""``paddle.dataset.mq2007``: documents found for queries, to be ranked."""

from fleet_mpi.data.sets.mq2007 import (Query, QueryList, fetch, gen_list, gen_pair, gen_plain_txt, gen_point,
                                        load_from_text, query_filter, test, train)
from fleet_mpi.errors import missing_name as _missing_name

__getattr__ = _missing_name("paddle.dataset.mq2007", globals())
