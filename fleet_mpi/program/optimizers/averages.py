"""Averages of the parameters over the steps, to be used in their place for a while: moving, and over a window."""

from contextlib import contextmanager

from fleet_mpi.errors import UsageError
from fleet_mpi.program.graph import unique_name
from fleet_mpi.program.graph.program import Program, default_main_program
from fleet_mpi.program.graph.unique_name import name_scope
from fleet_mpi.program.graph.variable import Variable
from fleet_mpi.program.ops.averaging import COUNTS, SUMS
from fleet_mpi.program.optimizers.base import persistable


class Average:
    """Base: ``apply`` puts the averages in the place of the parameters, ``restore`` puts these back.

    ``apply_program`` and ``restore_program`` do it and may be run by hand.
    """

    def __init__(self, name):
        self._name = name or ""
        self._params = [param for param in default_main_program().global_block().all_parameters()
                        if param.do_model_average is not False]
        if not self._params:
            raise UsageError(f"{type(self).__name__}: the default program has no parameter to average yet: make it "
                             f"after the network")
        self.apply_program, self.restore_program = Program(), Program()

    def _state(self, param, kind, dtype=None, value=0.0, shape=None):
        name = unique_name.generate(f"{self._name}{param.name}_{kind}")
        return persistable(name, shape or param.shape, dtype or param.dtype, value)

    def _build_programs(self, append_value):
        """Programs that save, replace and restore; ``append_value(block, param)`` adds the op that replaces."""
        apply, restore = self.apply_program.global_block(), self.restore_program.global_block()
        for param in self._params:
            backup = unique_name.generate(f"{self._name}{param.name}.backup")
            for block in (apply, restore):
                twin(block, param)
                block.create_var(name=backup, shape=param.shape, dtype=param.dtype, persistable=True)
            apply.append_op("assign", {"X": [param.name]}, {"Out": [backup]})
            append_value(apply, param)
            restore.append_op("assign", {"X": [backup]}, {"Out": [param.name]})

    @contextmanager
    def apply(self, executor, need_restore=True):
        """Within the block parameters are their averages; after it too, with ``need_restore=False``."""
        executor.run(self.apply_program)
        try:
            yield
        finally:
            if need_restore:
                self.restore(executor)

    def restore(self, executor):
        """Put the parameters back that ``apply`` replaced."""
        executor.run(self.restore_program)


class ExponentialMovingAverage(Average):
    """decay * average + (1 - decay) * parameter at every ``update()`` in the program, corrected for its start from 0.

    With ``thres_steps`` (a variable with the step t) the decay is at most (1 + t) / (10 + t).
    """

    def __init__(self, decay=0.999, thres_steps=None, name=None):
        super().__init__(name)
        if thres_steps is not None and not isinstance(thres_steps, Variable):
            raise UsageError(f"ExponentialMovingAverage: thres_steps must be a variable with the step, got "
                             f"{type(thres_steps).__name__}")
        self._decay, self._thres_steps = float(decay), thres_steps
        self._averages = {param.name: self._state(param, "ema") for param in self._params}
        self._power = self._state(self._params[0], "decay_pow", "float64", 1.0, [1])
        twin(self.apply_program.global_block(), self._power)
        self._build_programs(self._append_value)

    def _append_value(self, block, param):
        average = twin(block, self._averages[param.name])
        block.append_op("ema_value", {"Param": [param.name], "Ema": [average], "DecayPow": [self._power.name]},
                        {"Out": [param.name]})

    def update(self):
        """Add the ops that move the averages on to the default program: call it once, after ``minimize``."""
        program = default_main_program()
        block = program.current_block()
        with program._optimized_guard([]), name_scope("moving_average"):
            decay = block.create_var(name=unique_name.generate("ema_decay"), shape=[1], dtype="float64",
                                     stop_gradient=True)
            steps = {"ThresSteps": [self._thres_steps]} if self._thres_steps is not None else {}
            block.append_op("ema_decay", {"DecayPow": [self._power], **steps},
                            {"Decay": [decay], "DecayPowOut": [self._power]}, {"decay": self._decay})
            for param in self._params:
                average = self._averages[param.name]
                block.append_op("ema_update", {"Param": [param], "Ema": [average], "Decay": [decay]},
                                {"EmaOut": [average]})


class ModelAverage(Average):
    """The mean of each parameter over the last ``average_window_rate`` of all steps, within the two bounds.

    Its ops are added to the default program at once: make it after ``minimize``.
    """

    def __init__(self, average_window_rate, min_average_window=10000, max_average_window=10000, regularization=None,
                 name=None):
        super().__init__(name)
        self._attrs = {"average_window": float(average_window_rate), "min_average_window": int(min_average_window),
                       "max_average_window": int(max_average_window)}
        self._states = {param.name: self._append(param) for param in self._params}
        self._build_programs(self._append_value)

    def _append(self, param):
        states = {name: self._state(param, name) for name in SUMS}
        states.update({name: self._state(param, name, "int64", 0, [1]) for name in COUNTS})
        program = default_main_program()
        with program._optimized_guard([]), name_scope("move_average"):
            program.current_block().append_op(
                "average_accumulates",
                {"param": [param], **{f"in_{name}": [state] for name, state in states.items()}},
                {f"out_{name}": [state] for name, state in states.items()}, self._attrs)
        return states

    def _append_value(self, block, param):
        states = {name: twin(block, self._states[param.name][name]) for name in SUMS + COUNTS[:2]}
        block.append_op("average_value", {"param": [param.name], **{name: [var] for name, var in states.items()}},
                        {"Out": [param.name]})


def twin(block, var):
    """The same variable in another program's block."""
    return block.create_var(name=var.name, shape=var.shape, dtype=var.dtype, persistable=True)
