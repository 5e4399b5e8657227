"""Executor: runs programs. Finds or makes the plan for what is fed and fetched, and runs it."""

from collections import OrderedDict

import numpy as np

from fleet_mpi import arrays, notices
from fleet_mpi.errors import ProgramError, UsageError
from fleet_mpi.program import scope as scopes
from fleet_mpi.program.dataset_loop import run_over_dataset
from fleet_mpi.program.feeding import FedSequence, as_feed, feed_meta
from fleet_mpi.program.fetched import fetched
from fleet_mpi.program.memory import Arena
from fleet_mpi.program.places import default_place
from fleet_mpi.program.plan import Clock, make_plan
from fleet_mpi.program.program import Program, default_main_program


# Plans kept per program and scope: ragged batches come with ever new shapes.
MOST_PLANS = 16


class Compiled:
    """The plans of one program in one scope."""

    def __init__(self, program, scope, xp, worker):
        self.program, self.scope, self.xp = program, scope, xp
        self.version = self.scope_version = -1
        self.plans = OrderedDict()
        self.arena = Arena(xp)
        self.clock = Clock(worker)

    def find(self, signature, feed, fetches):
        """The plan for a feed signature and fetch list, made if need be."""
        if self.version != self.program.version or self.scope_version != _version(self.scope):
            self.plans.clear()
        plan = self.plans.get((signature, fetches))
        if plan is None:
            plan = self._make(signature, feed, fetches)
        if plan.before_run and any([make_room() for make_room in plan.before_run]):
            self.plans.clear()
            plan = self._make(signature, feed, fetches)
        return plan

    def _make(self, signature, feed, fetches):
        memory = self.arena.generation, _version(self.scope)
        block = self.program.global_block()
        metas = {}
        for name, value in feed.items():
            if name in block.vars:
                metas[name] = feed_meta(block.vars[name], value)
            else:
                notices.log().warning("feed: the program has no variable %r; it is passed over", name)
        plan = make_plan(self.program, self.scope, metas, fetches, self.xp, self.clock, self.arena)
        # Plans made before hold on to memory that this one replaced: temporaries, or arrays of the scope
        # (a persistable variable may be as long as the batch).
        if (self.arena.generation, _version(self.scope)) != memory or len(self.plans) >= MOST_PLANS:
            self.plans.clear()
        self.plans[signature, fetches] = plan
        self.version, self.scope_version = self.program.version, _version(self.scope)
        return plan


class Executor:
    """Runs programs on a place, keeping the compiled plans from run to run."""

    def __init__(self, place=None):
        self.place = place if place is not None else default_place()
        self._xp = None
        self._compiled = {}
        self.worker = 0

    def run(self, program=None, feed=None, fetch_list=None, feed_var_name="feed",
            fetch_var_name="fetch", scope=None, return_numpy=True, use_program_cache=False,
            return_merged=True, use_prune=False):
        """Run a program once and return what is fetched, in order.

        ``feed`` is a dictionary, or the list with one dictionary that an iterable loader yields; a
        started non-iterable loader of the program feeds by itself. Arrays are copied in and out.
        """
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
        compiled = self._compiled.get((id(program), id(scope)))
        if compiled is None:
            compiled = self._compile(program, scope)
        if program._before_run:
            for hook in program._before_run:
                hook(scope)
        results = compiled.find(signature, feed, fetches).run(feed)
        if not results:
            return []
        if return_numpy:
            return [fetched(value) for value, _ in results]
        return [_as_tensor(value, lod) for value, lod in results]

    def _compile(self, program, scope):
        if self._xp is None:
            self._xp = self.place.array_module()
        made = self._compiled[id(program), id(scope)] = Compiled(program, scope, self._xp, self.worker)
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
        """Forget all plans and their memory."""
        self._compiled.clear()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


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
    if not isinstance(fetch_list, (list, tuple)):
        fetch_list = [fetch_list]
    names = []
    for one in fetch_list:
        if isinstance(one, str):
            names.append(one)
        elif isinstance(one, (list, tuple)):
            names.extend(_fetch_names(one))
        elif hasattr(one, "name"):
            names.append(one.name)
        else:
            raise ProgramError(f"fetch_list: expected variables or names, got {type(one).__name__}")
    return tuple(names)


def _as_tensor(value, lod):
    if isinstance(value, arrays.Rows):
        return value
    return scopes.Tensor(arrays.to_host(value).copy(), lod)
