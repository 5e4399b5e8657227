"""Program: blocks of ops, the default programs, and the guards that choose where layers write."""

import copy
import numbers
import weakref
from contextlib import contextmanager

from fleet_mpi.errors import UsageError
from fleet_mpi.program.graph.attachment import Attachment, shown
from fleet_mpi.program.graph.block import Block
from fleet_mpi.program.graph.registry import FORWARD
from fleet_mpi.program.graph.types import Role
from fleet_mpi.program.graph.variable import Variable


class Program:
    """What is computed. Mutating it moves ``version`` on, so that compiled plans are made anew."""

    _seed_of_new = 0

    _is_distributed, _distribution, _server = shown("is_distributed"), shown("distribution"), shown("server")
    _is_chief, _endpoints, _ps_endpoint = shown("is_chief"), shown("endpoints"), shown("ps_endpoint")
    _distributed_lookup_table = shown("distributed_lookup_table")
    _parameters_on_pservers = shown("parameters_on_pservers")

    def __init__(self):
        self.version = 0
        self.blocks = [Block(self, 0)]
        self.current_block_idx = 0
        self._random_seed = Program._seed_of_new
        self._op_role = Role.Forward
        self._op_role_var = []
        self._device = None
        self.attachment = Attachment()  # its part in a job
        self._fleet_opt = None
        self._heter_pipeline_opt = None
        self._loaders = []
        self._before_run = []  # called with the scope before every run (a learning-rate scheduler's value)
        self._gradient_clip = None
        self._compiled = []  # what executors keep for this program
        self._runs_before = weakref.WeakKeyDictionary()  # scope: the runs of a training that is resumed there
        self._resumed_seed = 0  # the job's seed of that training, where it drew from one

    def __getstate__(self):
        # For copy.deepcopy and pickle: plans hold arrays and locks, and belong to this very program; so do scopes.
        return {**self.__dict__, "_compiled": [], "_runs_before": weakref.WeakKeyDictionary()}

    def touch(self):
        """Note that the program changed."""
        self.version += 1

    @property
    def random_seed(self):
        """Seed of the random ops; 0 means a fresh one for every job."""
        return self._random_seed

    @random_seed.setter
    def random_seed(self, seed):
        if isinstance(seed, bool) or not isinstance(seed, numbers.Real) or int(seed) != seed or seed < 0:
            raise UsageError(f"random_seed: expected an integer from 0 up, got {seed!r}")
        self._random_seed = int(seed)
        self.touch()

    @classmethod
    def global_seed(cls, seed=0):
        """The seed of programs that are made from now on."""
        Program._seed_of_new = seed

    @property
    def num_blocks(self):
        """How many blocks there are."""
        return len(self.blocks)

    def global_block(self):
        """Block 0."""
        return self.blocks[0]

    def block(self, index):
        """The block of this number."""
        return self.blocks[index]

    def current_block(self):
        """The block that layers write into now."""
        return self.blocks[self.current_block_idx]

    def _create_block(self, parent_idx=None):
        parent = self.current_block_idx if parent_idx is None else parent_idx
        self.blocks.append(Block(self, len(self.blocks), parent))
        self.current_block_idx = len(self.blocks) - 1
        self.touch()
        return self.current_block()

    def _create_gradient_block(self, body):
        """A block for the gradient of a body: it sees the body's variables, and layers do not write into it."""
        current = self.current_block_idx
        made = self._create_block(body.idx)
        made.forward_block_idx, self.current_block_idx = body.idx, current
        return made

    def _rollback(self):
        self.current_block_idx = self.current_block().parent_idx

    def list_vars(self):
        """Every variable of every block."""
        for block in self.blocks:
            yield from block.vars.values()

    def all_parameters(self):
        """The parameters of all blocks."""
        return [param for block in self.blocks for param in block.all_parameters()]

    def clone(self, for_test=False):
        """A copy whose ops and variables are its own; with ``for_test``, without backward, batch norm and
        dropout frozen. Values are not in a program, so both work on the same parameters in a scope."""
        twin = copy_program(self)
        if for_test:
            freeze_for_test(twin)
        return twin

    def _prune(self, targets):
        return prune(self, targets)

    def _inference_optimize(self, prune_read_op=True):
        return self.clone(for_test=True)

    def to_string(self, throw_on_error=True, with_details=False):
        """The program as text: every block, a line per variable and op."""
        return "\n\n".join(block.to_string() for block in self.blocks)

    __str__ = to_string
    __repr__ = to_string

    @property
    def desc(self):
        """The program itself: scripts ask for ``program.desc.serialize_to_string()``."""
        return self

    def serialize_to_string(self):
        """The program as bytes that ``parse_from_string`` reads."""
        from fleet_mpi.program.graph.serialize import program_to_bytes
        return program_to_bytes(self)

    @staticmethod
    def parse_from_string(binary_str):
        """The program that ``serialize_to_string`` wrote."""
        from fleet_mpi.program.graph.serialize import program_from_bytes
        return program_from_bytes(binary_str)

    @contextmanager
    def _with_role(self, role, role_var=()):
        before = self._op_role, self._op_role_var
        self._op_role, self._op_role_var = role, list(role_var)
        try:
            yield
        finally:
            self._op_role, self._op_role_var = before

    def _optimized_guard(self, param_and_grads):
        names = [one.name if isinstance(one, Variable) else one for one in param_and_grads]
        return self._with_role(Role.Optimize, names)

    def _backward_role_guard(self):
        return self._with_role(Role.Backward)

    def _lr_schedule_guard(self, is_with_opt=False):
        return self._with_role(Role.LRSched | (Role.Optimize if is_with_opt else Role.Forward))


def copy_program(program):
    """An equal program; variables keep names, regularizers and the like are shared."""
    twin = Program()
    twin._random_seed = program._random_seed
    twin.attachment, twin._fleet_opt = program.attachment.of_copy(), copy.copy(program._fleet_opt)
    twin.blocks = [Block(twin, old.idx, old.parent_idx, old.forward_block_idx) for old in program.blocks]
    for old, new in zip(program.blocks, twin.blocks):
        for var in old.vars.values():
            made = var.copy_to(new)
            made.error_clip = var.error_clip
        new.ops = [copy_op(op, new) for op in old.ops]
    twin._loaders = list(program._loaders)
    twin._before_run = list(program._before_run)
    twin.current_block_idx = program.current_block_idx
    return twin


def copy_op(op, block):
    """The same op for another block; slots and attributes are copied."""
    from fleet_mpi.program.graph.operator import Operator
    return Operator(block, op.type, op.inputs, op.outputs, copy.copy(op.attrs), op.site)


def freeze_for_test(program):
    """Drop what trains (backward, optimize, lr schedule) and set ``is_test`` where an op has it."""
    for block in program.blocks:
        block.ops = [op for op in block.ops if not op.trains]
        for op in block.ops:
            if "is_test" in op.attrs:
                op.attrs["is_test"] = True
    _detach_unless_it_trains(program)
    program.touch()


def _detach_unless_it_trains(program):
    """A program that no longer trains needs no other workers: it may be run by one of them alone."""
    if not any(op.trains for block in program.blocks for op in block.ops):
        program.attachment = program.attachment.without_training()


def prune(program, targets, feeds=()):
    """A copy with only the ops of block 0 that the target variables (or names) depend on.

    What makes the variables named in ``feeds`` is left out: they will be fed.
    """
    wanted = {one if isinstance(one, str) else one.name for one in targets}
    twin = copy_program(program)
    block = twin.global_block()
    kept = []
    for op in reversed(block.ops):
        if wanted.difference(feeds).intersection(op.output_arg_names):
            kept.append(op)
            wanted.update(op.input_arg_names)
            wanted.update(outside_names(twin, op))
            # A gradient needs the shapes of what it is the gradient of, even where it reads no values.
            wanted.update(name for names in op.attrs.get(FORWARD, {}).values() for name in names if name)
            if "sub_block" in op.attrs:
                wanted.update(op.output_arg_names)  # a body may leave them as they were
    block.ops = kept[::-1]
    used = wanted.union(*(op.output_arg_names for op in block.ops)) if block.ops else wanted
    block.vars = {name: var for name, var in block.vars.items() if name in used}
    _detach_unless_it_trains(twin)
    twin.touch()
    return twin


def outside_names(program, op):
    """Variables that the body of a control-flow op reads from around it, before it writes them itself.

    A gradient's body also reads variables of the body it is the gradient of: these are not around it.
    """
    if "sub_block" not in op.attrs:
        return set()
    body = program.blocks[op.attrs["sub_block"]]
    names = reads_from_outside(body)
    return names.difference(program.blocks[body.forward_block_idx].vars) if body.forward_block_idx >= 0 else names


def reads_from_outside(body):
    """Variables of the enclosing blocks that a block reads before it writes them itself."""
    made, names = set(body.vars), set()
    for inner in body.ops:
        names.update(set(inner.input_arg_names).union(outside_names(body.program, inner)).difference(made))
        made.update(inner.output_arg_names)
    return names


def writes_to_outside(body):
    """Variables of the enclosing blocks that a block (or one inside it) writes, in order."""
    names = {}
    for inner in body.ops:
        nested = writes_to_outside(body.program.blocks[inner.attrs["sub_block"]]) if "sub_block" in inner.attrs else []
        names.update(dict.fromkeys([*inner.output_arg_names, *nested]))
    return [name for name in names if name not in body.vars]


_main_program = Program()
_startup_program = Program()


def default_main_program():
    """The program that layers are added to."""
    return _main_program


def default_startup_program():
    """The program that initialises the parameters of the main one."""
    return _startup_program


def switch_main_program(program):
    """Make another program the default; returns the one before."""
    global _main_program
    before, _main_program = _main_program, program
    return before


def switch_startup_program(program):
    """Make another program the default startup program; returns the one before."""
    global _startup_program
    before, _startup_program = _startup_program, program
    return before


@contextmanager
def program_guard(main_program, startup_program=None):
    """Within the block, layers write into these programs."""
    for program in (main_program, startup_program):
        if not (isinstance(program, Program) or program is None and program is startup_program):
            raise UsageError(f"program_guard: expected a Program, got {type(program).__name__}")
    main = switch_main_program(main_program)
    startup = switch_startup_program(startup_program) if startup_program is not None else None
    try:
        yield
    finally:
        switch_main_program(main)
        if startup is not None:
            switch_startup_program(startup)


@contextmanager
def device_guard(device=None):
    """Mark the ops made within the block with a device (``"cpu"``, ``"gpu:0"``)."""
    program = default_main_program()
    before, program._device = program._device, device
    try:
        yield
    finally:
        program._device = before
