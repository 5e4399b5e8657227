"""The same training by a plain loop over numpy arrays: gradients averaged in worker order, rules on whole arrays.

Shared by the unit tests (loopback, one process) and by tests/mpi/test_door.py.
"""

import hashlib

import numpy as np

from fleet_mpi.update_rules import RULES, square_sum

STEPS = 3
BY_NORMS = ("lars_momentum", "lamb")
ELEMENTWISE = tuple(name for name in RULES if name not in (*BY_NORMS, "dgc_momentum"))
ALL_RULES = (*ELEMENTWISE, *BY_NORMS)
# Other settings than the defaults, so that they are seen to arrive.
SETTINGS = {"momentum": {"mu": 0.8, "use_nesterov": True}, "adam": {"beta1": 0.8}, "ftrl": {"l1": 0.01, "l2": 0.02},
            "rmsprop": {"momentum": 0.5, "centered": True}, "adagrad": {"initial_accumulator_value": 0.1},
            "dpsgd": {"sigma": 0.01, "batch_size": 4.0, "seed": 3}}
FACTORS = {"sgd": 0.5, "adam": 2.0}


def lr(step):
    """A schedule."""
    return 0.1 / (1 + step)


def shape_of(rule):
    """Long enough to be cut for four servers, or not cut at all."""
    return (410, 97) if RULES[rule].states else (37,)


def dtype_of(rule):
    """One of the rules works on float64."""
    return "float64" if rule == "adamw" else "float32"


def first_values(rules):
    """{name: array}; a parameter is called like its rule."""
    draw = np.random.default_rng(1)
    return {rule: draw.normal(size=shape_of(rule)).astype(dtype_of(rule)) for rule in rules}


def gradients(worker, step, rules):
    """A worker's."""
    draw = np.random.default_rng([2, worker, step])
    return {rule: draw.normal(size=shape_of(rule)).astype(dtype_of(rule)) for rule in rules}


def averaged(step, workers, rules):
    """Summed in worker order, times one over their number."""
    found = gradients(0, step, rules)
    for worker in range(1, workers):
        for rule, more in gradients(worker, step, rules).items():
            found[rule] = found[rule] + more
    return {rule: total * total.dtype.type(1.0 / workers) if workers > 1 else total for rule, total in found.items()}


def train(job, rules, **said):
    """A worker's part, by the door; returns {name: value} in the end."""
    params = first_values(rules) if job.worker == 0 else {
        rule: np.zeros(shape_of(rule), dtype_of(rule)) for rule in rules}
    server = job.parameter_server(params, "sgd", lr, each={rule: {"rule": rule, **SETTINGS.get(rule, {})}
                                                           for rule in rules},
                                  rates={rule: FACTORS[rule] for rule in rules if rule in FACTORS}, **said)
    for step in range(STEPS):
        server.push_pull(gradients(job.worker, step, rules))
    return params


def by_numpy(workers, rules, prepare=lambda grads, params: None):
    """The same by hand; ``prepare(gradients, parameters)`` clips and decays."""
    params = first_values(rules)
    states = {rule: RULES[rule].new_states(params[rule], **SETTINGS.get(rule, {})) for rule in rules}
    for step in range(STEPS):
        grads = averaged(step, workers, rules)
        prepare(grads, params)
        for rule in rules:
            rate = np.array([lr(step) * FACTORS.get(rule, 1.0)], params[rule].dtype)
            hypers = {name: value for name, value in SETTINGS.get(rule, {}).items() if name in RULES[rule].hypers}
            RULES[rule].run(params[rule], grads[rule], rate, *states[rule], **RULES[rule].complete(hypers))
    return params


def digest(params):
    """SHA-256 of names and bytes."""
    made = hashlib.sha256()
    for name in sorted(params):
        made.update(name.encode() + np.ascontiguousarray(params[name]).tobytes())
    return made.hexdigest()


def bounded_together(norm):
    """The ``prepare`` that bounds the norm of all gradients together."""
    def prepare(grads, params):
        total = sum((square_sum(grads[name].reshape(-1)) for name in sorted(grads)[1:]),
                    square_sum(grads[min(grads)].reshape(-1)))
        factor = norm / np.maximum(np.sqrt(total), norm)
        for grad in grads.values():
            np.multiply(grad, factor.astype(grad.dtype), out=grad)
    return prepare
