"""What makes an example one process of a job: who it is, how parameters move, which samples are its own.

The guides show three ways to the same training: the transpiler, the fleet of 1.x and the fleet of 2.x. Each is a
class here, with the calls in the order that its guide has, once with servers and once without (collective);
``job(options)`` picks one. A process that was started alone trains as if none of this were there, unless it is told to
train collectively.
"""

import ast
import contextlib
import itertools

import numpy as np

from fleet_mpi import fluid, settings
from fleet_mpi.errors import EnvironmentProblem, UsageError
from fleet_mpi.fleet import preemption
from fleet_mpi.fleet.preemption import Preemption
from fleet_mpi.fluid.incubate.fleet.base.role_maker import PaddleCloudRoleMaker, Role, UserDefinedRoleMaker
from fleet_mpi.fluid.incubate.fleet.collective import DistributedStrategy as CollectiveStrategy, fleet as collective1
from fleet_mpi.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet as fleet1
from fleet_mpi.modes import MODES
from fleet_mpi.paddle.distributed import fleet as fleet2
from fleet_mpi.runtime import sessions

ALSO_CALLED = {"dc_asgd": "delay_compensated"}
COLLECTIVE = "collective"


class Unkept(contextlib.nullcontext):
    """The part of ``Preemption`` that examples use, where nothing is to be kept: signals have their usual effect."""

    def __enter__(self):
        return self

    def resume(self):
        """Training begins at its beginning."""
        return 0

    def stopping(self, step):
        """It ends at its end."""
        return False

    def leave_if_stopped(self):
        """It was not."""


class Alone:
    """One process, which keeps its parameters itself."""

    is_alone, is_server = True, False
    worker, workers = 0, 1
    name = ""
    checkpoints = ()  # variables that recomputing may keep, where it is not told which

    def __init__(self, options, role):
        self.options, self.role = options, role
        self.program = fluid.default_main_program()

    def minimize(self, optimizer, loss):
        """Let the program of the loss train; from here on ``program`` is what to run."""
        optimizer.minimize(loss)

    def start(self, exe):
        """Give the parameters their first values."""
        exe.run(fluid.default_startup_program())

    def save(self, exe, folder):
        """Save the parameters and the optimizer's state."""
        fluid.io.save_persistables(exe, folder, self.program)

    def load(self, exe, folder):
        """Take what ``save`` wrote; with servers, worker 0 hands them theirs."""
        fluid.io.load_persistables(exe, folder, self.program)

    def keeping(self, exe):
        """What stops, saves and resumes this worker's training; does nothing without ``--model-dir``."""
        folder = self.options.model_dir
        if not folder:
            return Unkept()
        return Preemption(folder, lambda path: self.save(exe, path), lambda path: self.load(exe, path))

    def finish(self, exe):
        """Training is over."""

    def share(self, reader):
        """A reader of this worker's samples: every so many, so that shares are equal but for one sample."""
        return lambda: itertools.islice(reader(), self.worker, None, self.workers)

    def all_reduce(self, input, mode="sum"):
        """The workers' arrays combined; a job can stand for ``util`` in ``fleet.metrics``."""
        return np.asarray(input)

    def traffic(self):
        """What moved between processes so far, as the end of a sentence."""
        return "one process, nothing moved"

    def lowest(self, value):
        """The number to decide by: workers that wait for each other in every step must decide alike."""
        return float(value)


class _Among(Alone):
    """One process of several."""

    is_alone = False

    def __init__(self, options, role):
        super().__init__(options, role)
        self.join()
        self.is_server = role.is_server()
        self.worker, self.workers = role.worker_index(), role.worker_num()
        self.name = f"worker {self.worker}" if self.workers > 1 else ""

    def join(self):
        """Meet the other processes."""
        self.role.generate_role()

    def serve(self):
        """Keep parameters until all workers have left; returns an exit code. For servers, after ``minimize``."""
        raise NotImplementedError

    def traffic(self):
        """Pushes and their bytes."""
        client = sessions.session_of(fluid.global_scope()).client
        return (f"{len(client.links)} server(s) took {client.pushes:,} pushes of {client.push_bytes:,} bytes from this "
                f"worker, {client.pushes * client.push_bytes:,} bytes in all")

    def all_reduce(self, input, mode="sum"):
        """The workers' arrays combined."""
        output = np.array(input)
        self.role.all_reduce_worker(np.asarray(input), output, mode)
        return output


class ThroughTranspiler(_Among):
    """``fluid.DistributeTranspiler``: a program for workers, one for each server."""

    def minimize(self, optimizer, loss):
        """Let the program train, then split it."""
        super().minimize(optimizer, loss)
        self.transpiler = fluid.DistributeTranspiler(config=config_for(self.options))
        self.transpiler.transpile(trainer_id=self.worker, pservers=",".join(self.role.get_pserver_endpoints()),
                                  trainers=self.workers, sync_mode=MODES[self.options.mode].has_rounds)
        if not self.is_server:
            self.program = self.transpiler.get_trainer_program()

    def serve(self):
        """Run the program of this server."""
        endpoint = self.role.get_pserver_endpoints()[self.role.server_index()]
        program = self.transpiler.get_pserver_program(endpoint)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(self.transpiler.get_startup_program(endpoint, program))
        exe.run(program)
        return 0

    def finish(self, exe):
        """Tell the servers that this worker is done."""
        exe.close()


class ThroughFleet(_Among):
    """The fleet of 1.x: connect, then take the servers' values with the startup program."""

    def join(self):
        """Meet the other processes."""
        fleet1.init(self.role)

    def minimize(self, optimizer, loss):
        """Let the program train with servers."""
        fleet1.distributed_optimizer(optimizer, config_for(self.options)).minimize(loss)
        self.program = fleet1.main_program

    def serve(self):
        """Keep parameters."""
        fleet1.init_server()
        fleet1.run_server()
        return 0

    def start(self, exe):
        """Connect to the servers."""
        fleet1.init_worker()
        exe.run(fleet1.startup_program)

    def save(self, exe, folder):
        """Save what the servers have: the first worker does it for all."""
        fleet1.save_persistables(exe, folder)

    def finish(self, exe):
        """Tell the servers that this worker is done."""
        fleet1.stop_worker()


class ThroughFleet2(_Among):
    """The fleet of 2.x: first values come from worker 0."""

    def join(self):
        """Meet the other processes."""
        fleet2.init(self.role)

    def minimize(self, optimizer, loss):
        """Let the program train with servers."""
        fleet2.distributed_optimizer(optimizer, strategy_for(self.options)).minimize(loss)

    def serve(self):
        """Keep parameters."""
        fleet2.init_server()
        fleet2.run_server()
        return 0

    def start(self, exe):
        """Draw first values, and connect to the servers."""
        exe.run(fluid.default_startup_program())
        fleet2.init_worker()

    def save(self, exe, folder):
        """Save what the servers have: the first worker does it for all."""
        fleet2.save_persistables(exe, folder)

    def finish(self, exe):
        """Tell the servers that this worker is done."""
        fleet2.stop_worker()


class _Collective(_Among):
    """One worker of those that train without servers; also where it is the only one."""

    def __init__(self, options, role):
        super().__init__(options, role)
        self.is_alone = self.workers == 1

    def share(self, reader):
        """A reader of this worker's samples: as many as every other worker has, since each step waits for all."""
        def read_own():
            samples = reader()
            while len(turn := list(itertools.islice(samples, self.workers))) == self.workers:
                yield turn[self.worker]
        return read_own

    def traffic(self):
        """Who summed gradients with whom."""
        return f"no servers, gradients summed over {self.workers} worker(s)"

    def lowest(self, value):
        """Collective: the lowest of the workers' numbers."""
        return float(self.all_reduce(np.array([value], np.float64), "min")[0])


class CollectiveThroughTranspiler(_Collective):
    """``fluid.DistributeTranspiler`` in the mode nccl2: the program itself becomes a worker's."""

    def minimize(self, optimizer, loss):
        """Let the program train, then with others."""
        super().minimize(optimizer, loss)
        config = fluid.DistributeTranspilerConfig()
        config.mode = "nccl2"
        _set_all(config, self.options.strategy)
        # Labels, as in the guide; where ranks run is MPI's business.
        endpoints = self.role.get_trainer_endpoints() or [f"127.0.0.1:{6170 + number}"
                                                          for number in range(self.workers)]
        transpiler = fluid.DistributeTranspiler(config=config)
        transpiler.transpile(self.worker, program=self.program, startup_program=fluid.default_startup_program(),
                             trainers=",".join(endpoints), current_endpoint=endpoints[self.worker])
        self.program = transpiler.get_trainer_program()


class CollectiveThroughFleet(_Collective):
    """The collective fleet of 1.x."""

    def join(self):
        """Meet the other processes."""
        collective1.init(self.role)

    def minimize(self, optimizer, loss):
        """Let the program train with others."""
        strategy = CollectiveStrategy()
        _set_all(strategy, self.options.strategy)
        if strategy.forward_recompute and not strategy.recompute_checkpoints:
            strategy.recompute_checkpoints = self.checkpoints
        collective1.distributed_optimizer(optimizer, strategy).minimize(loss)
        self.program = collective1.main_program

    def start(self, exe):
        """Take the first worker's values."""
        exe.run(collective1.startup_program)

    def save(self, exe, folder):
        """Save what all workers have."""
        collective1.save_persistables(exe, folder)


class CollectiveThroughFleet2(_Collective):
    """The fleet of 2.x; its strategy has the most switches."""

    def join(self):
        """Meet the other processes."""
        fleet2.init(self.role, is_collective=True)

    def minimize(self, optimizer, loss):
        """Let the program train with others."""
        strategy = fleet2.DistributedStrategy()
        _set_all(strategy, self.options.strategy)
        if strategy.recompute and not strategy.recompute_configs["checkpoints"]:
            strategy.recompute_configs = {"checkpoints": self.checkpoints}
        fleet2.distributed_optimizer(optimizer, strategy).minimize(loss)

    def save(self, exe, folder):
        """Save what all workers have."""
        fleet2.save_persistables(exe, folder)


APIS = {"transpiler": ThroughTranspiler, "fleet": ThroughFleet, "fleet2": ThroughFleet2}
COLLECTIVE_APIS = {"transpiler": CollectiveThroughTranspiler, "fleet": CollectiveThroughFleet,
                   "fleet2": CollectiveThroughFleet2}


def add_model_dir(parser):
    """The option of examples that can be stopped and resumed; they call ``job.keeping``."""
    parser.add_argument("--model-dir", metavar="DIR",
                        help="begin with what was saved here; when asked to stop (USR1), save "
                        "parameters and step number here and end with code 75")


def add_options(parser, api, mode=None):
    """The options that only several processes look at; ``api`` and ``mode`` are defaults."""
    group = parser.add_argument_group("several processes (mpirun -np N, or python -m fleet_mpi.launch)")
    group.add_argument("--api", choices=list(APIS), default=api, help="transpiler, fleet of 1.x, or fleet of 2.x")
    group.add_argument("--mode", choices=[*MODES, COLLECTIVE], default=mode,
                       type=lambda name: ALSO_CALLED.get(name, name), help="when parameters move: sync where "
                       "there are servers; collective, where all processes work")
    group.add_argument("--strategy", action="append", default=[], metavar="NAME[=VALUE]",
                       help="collective: an option of "
                       "the strategy, of --api transpiler the config; NAME.KEY=VALUE for one of a NAME_configs")
    group.add_argument("--k-steps", type=int, default=10, metavar="K", help="geo: steps between two exchanges")
    group.add_argument("--staleness", type=int, default=2, metavar="S",
                       help="bounded_staleness: how many steps workers may be apart")


def job(options):
    """What this process is: alone, or a server or a worker of several processes."""
    if getattr(options, "model_dir", None):
        preemption.watch()
    role = PaddleCloudRoleMaker(is_collective=True) if options.mode == COLLECTIVE else _role()
    is_alone = role.worker_num() + role.server_num() == 1
    if options.mode is None:
        options.mode = "sync" if role.server_num() or is_alone else COLLECTIVE
    if options.mode == COLLECTIVE:
        return COLLECTIVE_APIS[options.api](options, role)
    if options.strategy:
        raise UsageError(f"--strategy {options.strategy[0]}: with servers, or in one process, --mode says how to "
                         f"train; give --mode collective")
    return Alone(options, role) if is_alone else APIS[options.api](options, role)


def _set_all(options, words):
    """Set what words such as ``amp``, ``nccl_comm_num=2`` or ``localsgd_configs.k_steps=4`` say."""
    for word in words:
        name, _, text = word.partition("=")
        try:
            value = ast.literal_eval(text) if text else True
        except (SyntaxError, ValueError):
            value = text
        name, _, key = name.partition(".")
        setattr(options, name, {key: value} if key else value)


def config_for(options):
    """How to train, for the transpiler and the fleet of 1.x."""
    config = fluid.DistributeTranspilerConfig()
    MODES[options.mode].ask(config, **_told(options))
    return config


def strategy_for(options):
    """How to train, for the fleet of 2.x; it has switches for some modes, and takes 1.x's options for the others."""
    mode = MODES[options.mode]
    if mode.strategy is None:
        return config_for(options)
    strategy = fleet2.DistributedStrategy()
    for name, value in mode.strategy.items():
        setattr(strategy, name, value)
    told = _told(options)
    if mode.told:
        strategy.a_sync_configs = {option: told[field] for option, field in mode.told.items()}
    return strategy


def _told(options):
    """What a command line says of a mode, as fields of 1.x's config."""
    return {"geo_sgd_need_push_nums": options.k_steps, "staleness": options.staleness}


def _role():
    """Who this process is: from the variables of the oldest guide, from PaddleCloud's, or from its rank."""
    addresses = [one.strip() for one in settings.get("PADDLE_PSERVER_IPS").split(",") if one.strip()]
    if not addresses:
        return PaddleCloudRoleMaker()
    port = settings.get("PADDLE_PSERVER_PORT")
    servers = [f"{address}:{port}" for address in addresses]
    own = settings.get("PADDLE_CURRENT_IP") or settings.get("PADDLE_CURRENT_IPP")
    serves = settings.get("PADDLE_TRAINING_ROLE") == "PSERVER"
    if serves and own not in addresses:
        raise EnvironmentProblem(f"PADDLE_CURRENT_IP={own!r} is not among PADDLE_PSERVER_IPS={','.join(addresses)}")
    number = addresses.index(own) if serves else max(0, settings.get("PADDLE_TRAINER_ID"))
    return UserDefinedRoleMaker(number, Role.SERVER if serves else Role.WORKER, settings.get("PADDLE_TRAINERS"),
                                servers)
