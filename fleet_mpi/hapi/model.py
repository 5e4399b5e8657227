"""``paddle.Model``: a network with an optimizer, a loss and metrics, trained in static programs.

In the original it works in eager mode too, which most scripts mean; here every script's model is static.
"""

import numpy as np

from fleet_mpi.data.collating import flat_fields
from fleet_mpi.errors import UsageError
from fleet_mpi.hapi import first_batch, model_files, together
from fleet_mpi.hapi.callbacks import config_callbacks
from fleet_mpi.hapi.mode_programs import EVAL, PREDICT, TRAIN, Builder, initialise
from fleet_mpi.hapi.passes import loader_of, run_pass, steps_of
from fleet_mpi.metrics.paddle2 import Metric
from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import copy_program, default_main_program, default_startup_program
from fleet_mpi.program.graph.structures import as_list
from fleet_mpi.program.layers.layer import Layer


class Model:
    """Trains, evaluates and predicts with a network.

    Args:
        inputs, labels: ``paddle.static.InputSpec`` of what a batch holds, or a list of them; None: as the first batch
            has it.
    """

    def __init__(self, network, inputs=None, labels=None):
        if not isinstance(network, Layer):
            raise UsageError(f"Model: expected a network (paddle.nn.Layer), got {type(network).__name__}")
        self.network, self.mode, self.stop_training = network, TRAIN, False
        self._inputs, self._labels = (first_batch.as_specs(given, what) for given, what in (
            (inputs, "inputs"), (labels, "labels")))
        own = network.parameters()
        home = own[0].block.program if own else default_main_program()
        self._builder = Builder(network, home, default_startup_program())
        self._executor, self._programs, self._left = Executor(), {}, None
        self._optimizer = self._loss = None
        self._metrics = []

    def prepare(self, optimizer=None, loss=None, metrics=None):
        """Say what trains the network, what it is to make small and what is measured."""
        if loss is not None and not callable(loss):
            raise UsageError(f"Model.prepare: expected a loss (a paddle.nn layer or a function), got "
                             f"{type(loss).__name__}")
        metrics = as_list(metrics) if metrics is not None else []
        for one in metrics:
            if not isinstance(one, Metric):
                raise UsageError(f"Model.prepare: expected metrics of paddle.metric, got {type(one).__name__}")
        self._optimizer, self._loss, self._metrics, self._programs = optimizer, loss, metrics, {}

    def parameters(self, *args, **kwargs):
        """The network's parameters."""
        return self.network.parameters(*args, **kwargs)

    def train_batch(self, inputs, labels=None):
        """One step of training: the losses, with metrics ``(losses, metrics)``."""
        if self._optimizer is None or self._loss is None:
            raise UsageError("Model.train_batch: nothing to train with yet; call model.prepare(optimizer, loss) first")
        return self._measured(TRAIN, inputs, labels)

    def eval_batch(self, inputs, labels=None):
        """One batch of evaluation: the losses, with metrics ``(losses, metrics)``; collective in a job."""
        return self._measured(EVAL, inputs, labels)

    def predict_batch(self, inputs):
        """The network's outputs for one batch; collective in a job, where they are those of all workers' batches."""
        fed = _arrays(inputs)[:self._number_of_inputs()]
        made = self._ready(PREDICT, fed, [])
        outputs = self._run(made, fed, [], made.outputs)
        return [np.concatenate(parts) if len(parts) > 1 else parts[0]
                for parts in zip(*self._of_each_worker(outputs, len(fed[0])))]

    def fit(self, train_data=None, eval_data=None, batch_size=1, epochs=1, eval_freq=1, log_freq=10, save_dir=None,
            save_freq=1, verbose=2, drop_last=False, shuffle=True, num_workers=0, callbacks=None):
        """Train for some epochs, and evaluate after every ``eval_freq`` of them where there is data for it."""
        if train_data is None:
            raise UsageError("Model.fit: expected train_data, a paddle.io.Dataset or DataLoader, got None")
        loader = loader_of(train_data, batch_size, num_workers, shuffle, drop_last)
        tested = loader_of(eval_data, batch_size, num_workers)
        calls = config_callbacks(callbacks, self, batch_size, epochs, steps_of(loader), log_freq, verbose, save_freq,
                                 save_dir, self._names())
        self.stop_training = False
        calls.on_begin(TRAIN)
        for epoch in range(epochs):
            calls.on_epoch_begin(epoch)
            logs, _ = run_pass(self, loader, calls, TRAIN)
            calls.on_epoch_end(epoch, logs)
            if tested is not None and epoch % eval_freq == 0:
                self._evaluate(tested, calls)
            if self.stop_training:
                break
        calls.on_end(TRAIN, logs)

    def evaluate(self, eval_data, batch_size=1, log_freq=10, verbose=2, num_workers=0, callbacks=None):
        """{"loss": [...], name of a metric: value} over all samples; the loss is that of the last batch."""
        loader = loader_of(eval_data, batch_size, num_workers)
        calls = config_callbacks(callbacks, self, batch_size, steps=steps_of(loader), log_freq=log_freq,
                                 verbose=verbose, metrics=self._names())
        logs = self._evaluate(loader, calls)
        return {name: logs[name] for name in self._names() if name in logs}

    def _evaluate(self, loader, calls):
        calls.on_begin(EVAL, {"steps": steps_of(loader), "metrics": self._names()})
        logs, _ = run_pass(self, loader, calls, EVAL)
        calls.on_end(EVAL, logs)
        return logs

    def predict(self, test_data, batch_size=1, num_workers=0, stack_outputs=False, callbacks=None, verbose=1):
        """For each output of the network its arrays batch by batch, or one array of all samples (stack_outputs)."""
        loader = loader_of(test_data, batch_size, num_workers)
        calls = config_callbacks(callbacks, self, batch_size, steps=steps_of(loader), verbose=verbose)
        calls.on_begin(PREDICT, {"steps": steps_of(loader)})
        logs, outputs = run_pass(self, loader, calls, PREDICT)
        calls.on_end(PREDICT, logs)
        by_output = [list(one) for one in zip(*outputs)]
        return [np.concatenate(one) for one in by_output] if stack_outputs else by_output

    def save(self, path, training=True):
        """Write ``<path>.pdparams`` and ``.pdopt`` to train on, or a model for inference; by the first worker."""
        if not together.is_first():
            return
        self._initialise()
        if training:
            model_files.save_training(path, self.network, self._optimizer)
            return
        if self._inputs is None:
            raise UsageError("Model.save: what the network is fed with is not known yet: give paddle.Model(network, "
                             "inputs=[InputSpec(...)]), or run a batch first")
        made = self._ready(PREDICT, [], [])
        model_files.save_for_inference(path, made, self._executor)

    def load(self, path, skip_mismatch=False, reset_optimizer=False):
        """Read what ``save`` wrote for training; what does not fit is refused, or passed over (skip_mismatch)."""
        self._initialise()
        model_files.load_training(path, self.network, self._optimizer, skip_mismatch, reset_optimizer)

    def summary(self, input_size=None, dtype=None):
        """Print the layers, their outputs and parameters; returns the numbers of parameters."""
        from fleet_mpi.hapi.model_summary import summary
        if input_size is None and self._inputs is None:
            raise UsageError("Model.summary: expected input_size, or inputs given to paddle.Model")
        return summary(self.network, input_size if input_size is not None else self._inputs, dtype)

    def log_of(self, mode, fields):
        """Run one batch of a pass: {"loss": [...], name of a metric: value so far}."""
        count = self._number_of_inputs()
        given = (self.train_batch if mode == TRAIN else self.eval_batch)(fields[:count], fields[count:])
        losses = (given[0] if self._metrics else given) if self._loss else []
        values = [one for metric in self._metrics for one in as_list(metric.accumulate())]
        return dict(zip(self._names(), ([[float(np.ravel(one)[0]) for one in losses]] if self._loss else []) + values))

    def forget(self, samples):
        """Begin to measure anew; ``samples`` are to come, those that are read twice not counted (None: unknown)."""
        self._left = samples
        for metric in self._metrics:
            metric.reset()

    def _names(self):
        return (["loss"] if self._loss else []) + [name for one in self._metrics for name in as_list(one.name())]

    def _measured(self, mode, inputs, labels):
        fed, answers = _arrays(inputs), _arrays(labels)
        made = self._ready(mode, fed, answers)
        fetched = iter(self._run(made, fed, answers, made.measured))
        losses = [next(fetched) for _ in made.losses]
        states = [[next(fetched) for _ in names] for names in made.states]
        metrics = [self._updated(mode, metric, state, len(fed[0])) for metric, state in zip(self._metrics, states)]
        self._count(len(fed[0]) * together.workers())
        return (losses, metrics) if losses and metrics else losses or metrics

    def _updated(self, mode, metric, state, samples):
        """What a metric's update says of a batch; an evaluation counts every worker's."""
        found = None
        for values in [state] if mode == TRAIN else together.of_each(state, samples, self._left):
            found = metric.update(*values)
        return found

    def _of_each_worker(self, values, samples):
        found = together.of_each(values, samples, self._left)
        self._count(samples * together.workers())
        return found

    def _count(self, samples):
        self._left = None if self._left is None else max(0, self._left - samples)

    def _run(self, made, inputs, labels, names):
        known = made.program.global_block().vars
        feed = {name: value for name, value in zip(made.inputs + made.labels, [*inputs, *labels]) if name in known}
        return self._executor.run(made.program, feed=feed, fetch_list=names)

    def _ready(self, mode, inputs, labels):
        """The program of a mode, built when it is first needed."""
        self.mode = mode
        if mode not in self._programs:
            self._describe(mode, inputs, labels)
            self._programs[mode], startup = self._builder.build(mode, self._inputs, self._labels or [], self._loss,
                                                                self._metrics, self._optimizer)
            initialise(startup, self._executor)
        return self._programs[mode]

    def _describe(self, mode, inputs, labels):
        if self._inputs is None:
            self._inputs = first_batch.described(inputs, "input")
        if self._labels is None and mode != PREDICT:
            self._labels = first_batch.described(labels, "label")

    def _number_of_inputs(self):
        return first_batch.number_of_inputs(self.network) if self._inputs is None else len(self._inputs)

    def _initialise(self):
        """Give the network's parameters values, where they have none yet."""
        initialise(copy_program(self._builder.startup), self._executor)


def _arrays(given):
    """The fields of a batch as arrays."""
    return [] if given is None else [np.asarray(one) for one in flat_fields(given)]
