"""Callbacks: the moments of a training, checkpoints, learning rates, early ends, and the lines that are printed."""

import re

import numpy as np
import pytest

from fleet_mpi import paddle
from fleet_mpi.errors import NotBuilt, UsageError
from fleet_mpi.paddle import callbacks, nn

X = np.random.default_rng(1).normal(size=(12, 3)).astype("float32")
DATA = [(X[:4], X[:4, :1]), (X[4:8], X[4:8, :1]), (X[8:], X[8:, :1])]


def model_of(rate=0.1):
    model = paddle.Model(nn.Linear(3, 1))
    model.prepare(paddle.optimizer.SGD(rate, parameters=model.parameters()), nn.MSELoss())
    return model


class Moments(callbacks.Callback):
    """Notes the name of every moment."""

    def __init__(self):
        self.met = []

    def __getattribute__(self, name):
        if name.startswith("on_"):
            self.met.append(name[3:])
        return super().__getattribute__(name)


def test_every_moment_comes_in_order():
    moments = Moments()
    model_of().fit(DATA[:1], DATA[:1], epochs=2, verbose=0, callbacks=moments)
    one = ["epoch_begin", "train_batch_begin", "train_batch_end", "epoch_end", "eval_begin", "eval_batch_begin",
           "eval_batch_end", "eval_end"]
    assert moments.met == ["train_begin", *one, *one, "train_end"]
    assert moments.params["epochs"] == 2 and moments.params["metrics"] == ["loss"]


def test_evaluations_come_every_so_many_epochs():
    moments = Moments()
    model_of().fit(DATA, DATA, epochs=5, eval_freq=2, verbose=0, callbacks=[moments])
    assert moments.met.count("eval_begin") == 3 and moments.met.count("train_batch_end") == 15


def test_checkpoints(tmp_path):
    model_of().fit(DATA, epochs=3, save_dir=str(tmp_path), save_freq=2, verbose=0)
    assert {path.stem for path in tmp_path.iterdir()} == {"0", "2", "final"}


@pytest.mark.parametrize("given, rate", ((None, 0.8 * 0.5 ** 6), (callbacks.LRScheduler(by_step=False, by_epoch=True),
                                                                  0.8 * 0.5 ** 2)))
def test_the_rate_moves_on_by_step_or_by_epoch(given, rate):
    scheduler = paddle.optimizer.lr.ExponentialDecay(0.8, 0.5)
    model_of(scheduler).fit(DATA, epochs=2, verbose=0, callbacks=given)
    assert scheduler.last_lr == pytest.approx(rate)


def test_training_ends_early_and_the_best_is_kept(tmp_path, capsys):
    stop = callbacks.EarlyStopping(patience=2, baseline=-1.0)
    moments = Moments()
    model_of().fit(DATA, DATA, epochs=9, save_dir=str(tmp_path), verbose=0, callbacks=[stop, moments])
    assert moments.met.count("epoch_end") == 2 and "Early stopping" in capsys.readouterr().out
    assert not (tmp_path / "best_model.pdparams").exists()
    model_of().fit(DATA, DATA, epochs=2, save_dir=str(tmp_path), verbose=0,
                   callbacks=callbacks.EarlyStopping(patience=9))
    assert (tmp_path / "best_model.pdparams").exists()


def test_more_of_an_accuracy_is_better_and_less_of_a_loss():
    for monitor, better in (("acc", 0.9), ("loss", 0.1), ("mine", 0.1)):
        watch = callbacks.EarlyStopping(monitor)
        watch.on_train_begin()
        assert watch._is_better(0.5) and watch._is_better(better) and not watch._is_better(0.5)


def test_a_number_that_is_not_there_is_said(capsys):
    model_of().fit(DATA, DATA, verbose=0, callbacks=callbacks.EarlyStopping("acc"))
    assert "EarlyStopping: an evaluation gives ['batch_size', 'loss', 'step'], and no 'acc'" in capsys.readouterr().err


def test_the_rate_falls_on_a_plateau():
    model = model_of(0.2)
    fall = callbacks.ReduceLROnPlateau(factor=0.5, patience=1, min_delta=1e9, cooldown=1, min_lr=0.06, verbose=0)
    model.fit(DATA, DATA, epochs=1, verbose=0, callbacks=fall)
    rates = []
    fall.on_train_begin()
    for _ in range(6):
        fall.on_eval_end({"loss": [1.0]})
        rates.append(round(model._optimizer.get_lr(), 3))
    assert rates == [0.2, 0.1, 0.1, 0.06, 0.06, 0.06]


@pytest.mark.parametrize("make", (lambda: callbacks.LRScheduler(True, True), lambda: callbacks.EarlyStopping(mode="up"),
                                  lambda: callbacks.ReduceLROnPlateau(factor=1.0)))
def test_what_cannot_be_is_said(make):
    with pytest.raises(UsageError, match="expected"):
        make()


def test_what_is_not_built_is_refused():
    with pytest.raises(NotBuilt, match="VisualDL"):
        callbacks.VisualDL("log")


def test_lines_at_every_so_many_steps(capsys):
    model = model_of()
    model.fit(DATA, DATA, epochs=1, log_freq=2)
    lines = [re.sub(r"(?<=: )\S+|\d+(?=ms)", "#", line) for line in capsys.readouterr().out.splitlines()[1:]]
    assert lines == ["Epoch 1/1", "step 2/3 - loss: # - #ms/step", "step 3/3 - loss: # - #ms/step", "Eval begin...",
                     "step 2/3 - loss: # - #ms/step", "step 3/3 - loss: # - #ms/step", "Eval samples: #"]
    model.predict(DATA, verbose=1)
    printed = capsys.readouterr().out
    assert "step 2/3 [====================..........] - " in printed and printed.endswith("Predict samples: 12\n")
    model.fit(DATA, verbose=0)
    assert not capsys.readouterr().out
