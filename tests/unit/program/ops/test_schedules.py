"""Ops of program/ops/schedules.py; 50 steps of each in tests/unit/program/test_schedules.py."""

import math

import numpy as np
from checking import Case, checks

DECAY = {"learning_rate": 0.5, "decay_steps": 4, "decay_rate": 0.7}
STAIRS = {**DECAY, "staircase": True}
LINE = {"learning_rate": 0.5, "decay_steps": 4, "end_learning_rate": 0.1, "power": 2.0}
PIECES = {"boundaries": [3, 8], "values": [0.5, 0.25, 0.125]}
NOAM = {"learning_rate": 2.0, "d_model": 16, "warmup_steps": 4}
COSINE = {"learning_rate": 0.5, "step_each_epoch": 3, "epochs": 5}
WARMUP = {"learning_rate": 0.5, "warmup_steps": 4, "start_lr": 0.1, "end_lr": 0.3}

# (type, attributes, step, rate)
RATES = [
    ("exponential_decay", DECAY, 6, 0.5 * 0.7 ** 1.5), ("exponential_decay", STAIRS, 6, 0.5 * 0.7),
    ("natural_exp_decay", DECAY, 6, 0.5 * math.exp(-0.7 * 1.5)), ("natural_exp_decay", STAIRS, 6, 0.5 * math.exp(-0.7)),
    ("inverse_time_decay", DECAY, 6, 0.5 / 2.05), ("inverse_time_decay", STAIRS, 6, 0.5 / 1.7),
    ("polynomial_decay", LINE, 3, 0.4 / 16 + 0.1), ("polynomial_decay", LINE, 9, 0.1),
    ("polynomial_decay", {**LINE, "cycle": True}, 0, 0.5), ("polynomial_decay", {**LINE, "cycle": True}, 6, 0.125),
    ("piecewise_decay", PIECES, 2, 0.5), ("piecewise_decay", PIECES, 3, 0.25), ("piecewise_decay", PIECES, 8, 0.125),
    ("noam_decay", NOAM, 0, 0.0), ("noam_decay", NOAM, 2, 2 * 0.25 * 2 / 8), ("noam_decay", NOAM, 16, 2 * 0.25 / 4),
    ("cosine_decay", COSINE, 7, 0.25 * (math.cos(0.4 * math.pi) + 1)),
    ("linear_lr_warmup", WARMUP, 1, 0.15), ("linear_lr_warmup", WARMUP, 4, 0.5),
]
CASES = [Case(type, {"X": np.array([step])}, attrs, {"Out": np.array([rate])}, note=str(step))
         for type, attrs, step, rate in RATES]
CASES += [Case("linear_lr_warmup", {"X": np.array([9]), "LearningRate": np.array([0.75])}, WARMUP,
               {"Out": np.array([0.75])}, note="variable"),
          Case("exponential_decay", {"X": np.array([4]), "LearningRate": np.array([2.0])}, DECAY,
               {"Out": np.array([1.4])}, note="variable")]

test_forward, test_device = checks(CASES)
