"""``paddle.distributed.fleet``: a module whose functions are the methods of one fleet object."""

from fleet_mpi.data.distributed_datasets import InMemoryDataset, QueueDataset
from fleet_mpi.data.multislot import MultiSlotDataGenerator, MultiSlotStringDataGenerator
from fleet_mpi.errors import missing_name as _missing_name
from fleet_mpi.fleet.paddle2 import Fleet2 as Fleet
from fleet_mpi.fleet.together import Util as UtilBase
from fleet_mpi.fleet.paddle2 import paddle_fleet as _fleet
from fleet_mpi.fleet.role_makers import PaddleCloudRoleMaker, Role
from fleet_mpi.fleet.role_makers import UserDefinedRoleMaker2 as UserDefinedRoleMaker
from fleet_mpi.fleet.strategy import DistributedStrategy
from fleet_mpi.paddle.distributed.fleet import base, meta_optimizers, metrics, utils

init = _fleet.init
is_first_worker = _fleet.is_first_worker
worker_index = _fleet.worker_index
worker_num = _fleet.worker_num
is_worker = _fleet.is_worker
worker_endpoints = _fleet.worker_endpoints
server_num = _fleet.server_num
server_index = _fleet.server_index
server_endpoints = _fleet.server_endpoints
is_server = _fleet.is_server
local_rank = _fleet.local_rank
node_num = _fleet.node_num
util = _fleet.util
barrier_worker = _fleet.barrier_worker
all_reduce = _fleet.all_reduce
init_worker = _fleet.init_worker
init_server = _fleet.init_server
run_server = _fleet.run_server
stop_worker = _fleet.stop_worker
distributed_optimizer = _fleet.distributed_optimizer
distributed_model = _fleet.distributed_model
save_inference_model = _fleet.save_inference_model
save_persistables = _fleet.save_persistables
shrink = _fleet.shrink
minimize = _fleet.minimize
step = _fleet.step
clear_grad = _fleet.clear_grad
set_lr = _fleet.set_lr
get_lr = _fleet.get_lr
state_dict = _fleet.state_dict
set_state_dict = _fleet.set_state_dict
amp_init = _fleet.amp_init
_final_strategy = _fleet._final_strategy
_get_applied_meta_list = _fleet._get_applied_meta_list
_get_applied_graph_list = _fleet._get_applied_graph_list
world_size = _fleet.world_size
save = _fleet.save
load_model = _fleet.load_model
fleet = _fleet

_refuse = _missing_name("paddle.distributed.fleet", globals(),
                        {"runtime": "fleet_mpi.paddle.distributed.fleet.runtime"})


def __getattr__(name):
    # These change with every minimize, so they cannot be bound once.
    if name in ("main_program", "startup_program", "_origin_program", "_role_maker"):
        return getattr(_fleet, name)
    return _refuse(name)
