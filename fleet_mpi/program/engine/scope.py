"""Scope: where values live between runs. Tensor: an array with a LoD, as scripts see it."""

from contextlib import contextmanager

import numpy as np

from fleet_mpi import arrays
from fleet_mpi.errors import ProgramError, UsageError
from fleet_mpi.program.graph import lod as lods


class Tensor:
    """An array and its LoD. Known to scripts as ``LoDTensor``; converts to numpy."""

    def __init__(self, array=None, lod=()):
        self.array = array
        self.lod_offsets = lod
        self._holder = None

    def set(self, array, place=None):
        """Take over values: in place where shape and type stay, so that compiled plans go on."""
        self._refuse_a_distant_one()
        array = arrays.to_host(array.array) if isinstance(array, Tensor) else np.asarray(array)
        if self.array is not None and self.array.shape == array.shape and self.array.dtype == array.dtype:
            self.array[...] = arrays.to_module(array, arrays.module_of(self.array))
            return
        self.array = np.array(array, copy=True, order="C")
        if self._holder is not None:
            self._holder.replaced()

    def set_lod(self, lod):
        """Take over offsets, ``[[0, 2, 5]]``."""
        self.lod_offsets = lods.from_offsets(lod)

    def lod(self):
        """The offsets as nested lists."""
        return [list(level) for level in self.lod_offsets]

    def set_recursive_sequence_lengths(self, lengths):
        """Take over lengths, ``[[2, 3]]``."""
        self.lod_offsets = lods.from_lengths(lengths)

    def recursive_sequence_lengths(self):
        """The lengths as nested lists."""
        return lods.to_lengths(self.lod_offsets)

    def has_valid_recursive_sequence_lengths(self):
        """Whether the offsets fit each other and the rows of the array."""
        rows = 0 if self.array is None else len(self.array)
        return lods.problem(self.lod_offsets, rows) is None

    def shape(self):
        """The dimensions as a list."""
        return list(self._needed().shape)

    _get_dims = shape

    def _dtype(self):
        return self._needed().dtype

    def numpy(self):
        """The values as a numpy array."""
        return arrays.to_host(self._needed())

    def __array__(self, dtype=None, copy=None):
        host = self.numpy()
        return np.array(host, dtype=dtype, copy=True) if copy is not False else np.asarray(host, dtype=dtype)

    def __len__(self):
        return len(self._needed())

    def __getitem__(self, index):
        return self.numpy()[index]

    def __float__(self):
        return float(self.numpy().reshape(-1)[0]) if self._needed().size == 1 else float(self.numpy())

    def _refuse_a_distant_one(self):
        if self._holder is not None and isinstance(self._holder.value, arrays.DistantTable):
            raise UsageError(f"{self._holder.name!r} is a table of {self._holder.value.shape[0]} rows that the servers "
                             f"keep: a worker neither sets nor reads it as a whole; load it with init_server(folder), "
                             f"save it with save_persistables")

    def _needed(self):
        self._refuse_a_distant_one()
        if self.array is None:
            raise ProgramError("this tensor has no value yet: run the startup program, load or set it first")
        return self.array

    def __repr__(self):
        return f"Tensor({self.array!r}" + (f", lod={self.lod()})" if self.lod_offsets else ")")


def create_lod_tensor(data, recursive_seq_lens, place=None):
    """A Tensor from an array, a Tensor or a list of ragged lists, with the given lengths."""
    if isinstance(data, Tensor):
        data = data.numpy()
    if isinstance(data, list):
        data = np.concatenate([np.asarray(row).reshape(len(row), -1) for row in data])
    tensor = Tensor(np.array(data), lods.from_lengths(recursive_seq_lens))
    wrong = lods.problem(tensor.lod_offsets, len(tensor.array))
    if wrong:
        raise UsageError(f"create_lod_tensor: {wrong}")
    return tensor


def create_random_int_lodtensor(recursive_seq_lens, base_shape, place, low, high):
    """A Tensor of whole numbers from ``low`` to ``high``, both included, drawn by numpy; a row has ``base_shape``."""
    rows = sum(recursive_seq_lens[-1])
    return create_lod_tensor(np.random.randint(low, high + 1, [rows, *base_shape]).astype("int64"), recursive_seq_lens,
                             place)


def as_numpy(tensor):
    """The values of a tensor, or of each in a list, as arrays; a tensor of sequences has none of fixed shape."""
    if isinstance(tensor, (list, tuple)):
        return [as_numpy(one) for one in tensor]
    if isinstance(tensor, Tensor) and tensor.lod_offsets:
        raise UsageError("as_numpy: this tensor holds sequences of different lengths; numpy.array(tensor) gives all "
                         "rows")
    return np.array(tensor)


class Holder:
    """A named place in a scope; scripts reach its value by ``get_tensor()``."""

    __slots__ = ("name", "tensor", "value", "scope")

    def __init__(self, name, scope):
        self.name = name
        self.scope = scope
        self.tensor = Tensor()
        self.tensor._holder = self
        self.value = None  # what is not one array: Rows, lists of tensors, readers

    def get_tensor(self):
        """The tensor; filling it fills the variable."""
        return self.tensor

    def put(self, array, lod=()):
        """Let the variable be this very array (no copy)."""
        if self.tensor.array is not array:
            self.tensor.array = array
            self.replaced()
        self.tensor.lod_offsets = lod

    def replaced(self):
        """Note that the array is another one: plans bound to the old one must be made anew."""
        self.scope.version += 1


class Scope:
    """Named values; a kid scope also sees its parent's."""

    def __init__(self, parent=None):
        self.parent = parent
        self.version = 0
        self._holders = {}
        self._kids = []

    def var(self, name):
        """The variable of this name in this scope; made if it does not exist."""
        if name not in self._holders:
            self._holders[name] = Holder(name, self)
            self.version += 1
        return self._holders[name]

    def find_var(self, name):
        """The variable in this scope or an enclosing one, or None."""
        found = self._holders.get(name)
        if found is None and self.parent is not None:
            return self.parent.find_var(name)
        return found

    def array(self, name):
        """The array of a variable, or None where it has no value."""
        holder = self.find_var(name)
        return None if holder is None else holder.tensor.array

    def new_scope(self):
        """A kid of this scope."""
        self._kids.append(Scope(self))
        return self._kids[-1]

    def drop_kids(self):
        """Forget all kid scopes."""
        self._kids.clear()

    def erase(self, names):
        """Forget variables of this scope."""
        for name in names:
            self._holders.pop(name, None)
        self.version += 1

    def local_var_names(self):
        """The names of this scope's own variables."""
        return list(self._holders)


_global_scope = Scope()


def global_scope():
    """The scope that runs use unless told otherwise."""
    return _global_scope


def value_of(name, scope=None, return_numpy=True):
    """The value that a variable has in a scope (the global one), as an array or a Tensor."""
    holder = (scope or global_scope()).find_var(name)
    if holder is None or holder.tensor.array is None:
        raise UsageError(f"_fetch_var: {name!r} has no value in this scope; only persistable variables keep theirs "
                         f"after a run")
    return as_numpy(holder.tensor) if return_numpy else holder.tensor


@contextmanager
def scope_guard(scope):
    """Within the block, another scope is the global one."""
    global _global_scope
    if not isinstance(scope, Scope):
        raise UsageError(f"scope_guard: expected a Scope, got {type(scope).__name__}")
    before, _global_scope = _global_scope, scope
    try:
        yield
    finally:
        _global_scope = before
