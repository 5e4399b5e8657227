"""Executor: runs programs. Finds or makes the plan for what is fed and fetched, and runs it.

Threads may run programs at the same time. One executor's runs of one program in one scope wait for each
other, since they share memory; what others do to the same parameters meanwhile is the script's business.
"""

import threading
import weakref

import numpy as np

from fleet_mpi import arrays, notices, settings
from fleet_mpi.errors import ProgramError, UsageError
from fleet_mpi.kernels import threads
from fleet_mpi.program.engine import scope as scopes
from fleet_mpi.program.engine.dataset_loop import run_over_dataset
from fleet_mpi.program.engine.feeding import FedSequence, as_feed, feed_meta, shape_remark
from fleet_mpi.program.engine.fetched import fetched
from fleet_mpi.program.engine.frame import Clock
from fleet_mpi.program.engine.memory import Arena
from fleet_mpi.program.engine.outside import Notes
from fleet_mpi.program.engine.places import default_place
from fleet_mpi.program.engine.plan import make_plan
from fleet_mpi.program.engine.transfers import Transfers
from fleet_mpi.program.graph.program import Program, default_main_program

# Plans kept per program and scope: ragged batches come with ever new shapes.
MOST_PLANS = 16
# Scopes a program is kept compiled for: scripts may make a scope for every evaluation.
MOST_SCOPES = 16

# Plans are made by one thread at a time: making one enters variables into the scope.
_planning = threading.RLock()


class Compiled:
    """The plans of one program in one scope, for one executor.

    The program owns it, so that it goes when the script lets go of the program.
    """

    def __init__(self, program, scope, xp, worker):
        self.program, self.scope, self.xp = program, scope, xp
        self.version = self.scope_version = self.settings_version = -1
        self.plans = {}
        self.arena, self.notes = Arena(xp, let_go=self.plans.clear), None if xp is np else Notes(Transfers(xp))
        self.clock = Clock(worker, program._runs_before.get(scope, 0))
        self.begin_run = None  # what the program's attachment has called before each run
        self._turn, self._runs_in = threading.Lock(), None

    def run(self, feed, signature, fetches, convert):
        """One step; ``convert`` copies the (value, lod) pairs that were fetched out of the plan's memory."""
        if not self._turn.acquire(False):
            self._wait()
        self._runs_in = threading.get_ident()
        try:
            for hook in self.program._before_run:
                hook(self.scope)
            plan = self._find(signature, feed, fetches)
            before_waiting = None if self.begin_run is None else self.begin_run()
            results = plan.run(feed)
            if fetches and self.notes is not None:
                if before_waiting is not None:
                    before_waiting()
                results = self._from_device(results)
            return convert(results)
        except ProgramError as error:
            remark = shape_remark(feed, self.program)
            if not remark or str(error).startswith("feed "):
                raise
            raise ProgramError(f"{remark}{error}") from error
        finally:
            self._runs_in = None
            self._turn.release()

    def _from_device(self, results):
        """The same (value, lod) pairs on the host; raises for ids that were found to be wrong by now."""
        values = self.notes.transfers.bring([value for value, _ in results])
        self.notes.raise_first()
        return [(value, lod) for value, (_, lod) in zip(values, results)]

    def _wait(self):
        if self._runs_in == threading.get_ident():
            raise UsageError("Executor.run: this program is already running in this scope and thread; a function "
                             "called by it (py_func, a hook) may run another program, or this one in a new Scope()")
        self._turn.acquire()

    def _find(self, signature, feed, fetches):
        """The plan for a feed signature and fetch list, made if need be."""
        if (self.version != self.program.version or self.scope_version != _version(self.scope)
                or self.settings_version != settings.version):
            self.plans.clear()
        plan = self.plans.get((signature, fetches))
        if plan is None:
            plan = self._make(signature, feed, fetches)
        if plan.before_run and any([make_room() for make_room in plan.before_run]):
            self.plans.clear()
            plan = self._make(signature, feed, fetches)
        return plan

    def _make(self, signature, feed, fetches):
        connect = self.program.attachment.connect
        # Not while planning: it may wait for workers that are other threads of this process.
        self.begin_run = None if connect is None else connect(self.scope, self.xp)
        with _planning:
            return self._make_alone(signature, feed, fetches)

    def _make_alone(self, signature, feed, fetches):
        threads.hold_blas()
        scope_version = _version(self.scope)
        block = self.program.global_block()
        metas = {}
        for name, value in feed.items():
            if name in block.vars:
                metas[name] = feed_meta(block.vars[name], value)
            else:
                notices.log().warning("feed: the program has no variable %r; it is passed over", name)
        plan = make_plan(self.program, self.scope, metas, fetches, self.xp, self.clock, self.arena,
                         self.notes)
        # Plans made before are bound to arrays of the scope that this one may have replaced: a persistable
        # variable can be as long as the batch.
        if _version(self.scope) != scope_version or len(self.plans) >= MOST_PLANS:
            self.plans.clear()
        self.plans[signature, fetches] = plan
        self.version, self.scope_version = self.program.version, _version(self.scope)
        self.settings_version = settings.version
        return plan


class Executor:
    """Runs programs on a place, keeping the compiled plans from run to run."""

    def __init__(self, place=None):
        self.place = place if place is not None else default_place()
        self._xp = None
        self._compiled = {}  # weak references, since a Compiled keeps its program and scope alive
        self.worker = None  # for random numbers: which worker to be; None: the one this process is
        notices.check_environment()

    def run(self, program=None, feed=None, fetch_list=None, feed_var_name="feed",
            fetch_var_name="fetch", scope=None, return_numpy=True, use_program_cache=False,
            return_merged=True, use_prune=False):
        """Run a program once and return what is fetched, in order.

        ``feed`` is a dictionary, or the list with one dictionary that an iterable loader yields; a
        started non-iterable loader of the program feeds by itself. Arrays are copied in and out.
        """
        if type(program) is not Program:
            if getattr(program, "_is_inference", False):
                return program._predictor.run(feed)
            for _ in range(getattr(program, "runs_at_once", 1) - 1):  # a CompiledProgram may ask for several
                self.run(program.program, feed, None, scope=scope)
            program = _program_of(program)
        if scope is None:
            scope = scopes._global_scope
        if type(feed) is not dict:
            feed = as_feed(feed, program)
        elif program._loaders and not feed:
            feed = as_feed(None, program)
        signature = _signature(feed)
        if signature is None:
            feed = as_feed(feed, program)
            signature = _signature(feed)
        fetches = _fetch_names(fetch_list)
        compiled = self.compiled(program, scope)
        if compiled.xp is not np:
            self.place.array_module()  # every thread has to choose its device
        return compiled.run(feed, signature, fetches, _as_arrays if return_numpy else _as_tensors)

    def compiled(self, program, scope):
        """What this executor keeps from run to run for a program in a scope."""
        known = self._compiled.get((id(program), id(scope)), _nothing)()
        return known if known is not None else self._compile(program, scope)

    def _compile(self, program, scope):
        if not isinstance(scope, scopes.Scope):
            raise UsageError(f"Executor.run: expected a Scope as scope, got {type(scope).__name__}")
        key = id(program), id(scope)
        with _planning:
            made = self._compiled.get(key, _nothing)()  # another thread may have been first
            if made is None:
                self._xp = self._xp or self.place.array_module()
                made = Compiled(program, scope, self._xp, self.worker)
                program._compiled.append(made)
                del program._compiled[:-MOST_SCOPES]
                self._compiled = {old: known for old, known in self._compiled.items() if known() is not None}
                self._compiled[key] = weakref.ref(made)
        return made

    def train_from_dataset(self, program=None, dataset=None, scope=None, thread=0, debug=False,
                           fetch_list=None, fetch_info=None, print_period=100, fetch_handler=None):
        """Run the program once for every batch of a dataset; ``fetch_list`` is logged every ``print_period``."""
        run_over_dataset(self, program, dataset, scope, fetch_list, fetch_info, print_period, fetch_handler)

    def infer_from_dataset(self, program=None, dataset=None, scope=None, thread=0, debug=False,
                           fetch_list=None, fetch_info=None, print_period=100, fetch_handler=None):
        """As ``train_from_dataset``, without the ops that train."""
        program = _program_of(program).clone(for_test=True)
        run_over_dataset(self, program, dataset, scope, fetch_list, fetch_info, print_period, fetch_handler)

    def close(self):
        """Forget all plans and their memory; a worker that trained with this executor says goodbye to its servers."""
        for made in self._forget():
            disconnect = made.program.attachment.disconnect
            if disconnect is not None:
                disconnect(made.scope)

    def _forget(self):
        found = [made for made in (known() for known in self._compiled.values()) if made is not None]
        for made in found:
            if made in made.program._compiled:
                made.program._compiled.remove(made)
        self._compiled = {}
        return found

    def __del__(self):
        self._forget()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


def _nothing():
    """A weak reference to nothing."""
    return None


def _program_of(program):
    if program is None:
        return default_main_program()
    if isinstance(program, Program):
        return program
    inner = getattr(program, "program", None)  # a CompiledProgram
    if isinstance(inner, Program):
        return inner
    raise UsageError(f"Executor.run: expected a Program as first argument, got {type(program).__name__}")


def _version(scope):
    version = scope.version
    while scope.parent is not None:
        scope = scope.parent
        version += scope.version
    return version


def _signature(feed):
    """What a plan depends on of a feed; None where a value is not yet an array or a LoD tensor."""
    words = []
    for name, value in feed.items():
        if type(value) is np.ndarray:
            words.append((name, value.shape, value.dtype))
        elif type(value) is FedSequence:
            words.append((name, value.shape, value.dtype, value.lod))
        else:
            return None
    return tuple(words)


def _fetch_names(fetch_list):
    if fetch_list is None:
        return ()
    if not isinstance(fetch_list, (list, tuple, set)):
        fetch_list = (fetch_list,)
    if isinstance(fetch_list, set) and len(fetch_list) > 1:
        raise ProgramError(f"fetch_list: a set has no order, got one of {len(fetch_list)}: give a list")
    names = []
    for one in fetch_list:
        name = one if type(one) is str else getattr(one, "name", None)
        if name is not None:
            names.append(name)
        elif isinstance(one, (list, tuple)):
            names.extend(_fetch_names(one))
        else:
            raise ProgramError(f"fetch_list: expected variables or names, got {type(one).__name__}")
    return tuple(names)


def _as_arrays(results):
    return [fetched(value) for value, _ in results]


def _as_tensors(results):
    return [value if isinstance(value, arrays.Rows) else scopes.Tensor(arrays.to_host(value).copy(), lod)
            for value, lod in results]
