"""A small job over arrays: its terms, its workers' part, and the same training by numpy alone."""

import numpy as np

from fleet_mpi.arrays import Rows
from fleet_mpi.connections.terms import Terms
from fleet_mpi.parameter_server.description import Description
from fleet_mpi.parameter_server.recipes import recipe
from fleet_mpi.parameter_server.tables.rows import RowTableDescription
from fleet_mpi.placement import Variable, place

STEPS, RATE, MU = 4, np.float32(0.1), 0.9
VARIABLES = Variable("w", (40, 7)), Variable("b", (7,))
TABLE = Variable("users", (50, 3))


def terms(workers=1, servers=2, fingerprint=None):
    """Momentum for dense variables, SGD for a table by rows."""
    placement = place((*VARIABLES, TABLE), servers, min_block_size=32)
    table = RowTableDescription(*TABLE, placement.of_variable("users"), recipe("sgd", "rate"))
    momentum = recipe("momentum", "rate", mu=MU)
    described = Description(placement.only({"w", "b"}), {"w": momentum, "b": momentum}, ("rate",), (table,))
    return Terms(described, tuple(f"server{index}" for index in range(servers)), workers,
                 fingerprint=fingerprint or {"job": "arrays"})


def first_values():
    """What servers begin with."""
    draw = np.random.default_rng(1)
    return {one.name: draw.normal(size=one.shape).astype("float32") for one in (*VARIABLES, TABLE)}


def gradients(worker, step):
    """({variable: gradient}, ids, rows) of a worker's step; no id comes twice."""
    draw = np.random.default_rng([2, worker, step])
    dense = {one.name: draw.normal(size=one.shape).astype("float32") for one in VARIABLES}
    return dense, draw.permutation(50)[:6], draw.normal(size=(6, 3)).astype("float32")


def work(connection, worker):
    """A worker's part; returns what it has in the end: {variable: value}."""
    connection.pull()
    views = connection.views(connection.client.grads)
    connection.client.rates[...] = RATE
    for step in range(STEPS):
        dense, ids, rows = gradients(worker, step)
        for name, gradient in dense.items():
            views[name][...] = gradient
        connection.take_rows("users", Rows(ids, rows, 50))
        connection.exchange()
    found = {name: view.copy() for name, view in connection.views(connection.client.params).items()}
    found["users"] = connection.pull_rows("users", np.arange(50))
    connection.finish()
    return found


def by_numpy(workers):
    """The same training in one process: gradients summed in worker order, times one over their number."""
    values, part = first_values(), 1.0 / workers
    velocity = {one.name: np.zeros(one.shape, "float32") for one in VARIABLES}
    for step in range(STEPS):
        given = [gradients(worker, step) for worker in range(workers)]
        for one in VARIABLES:
            total = given[0][0][one.name]
            for dense, *_ in given[1:]:
                total = total + dense[one.name]
            velocity[one.name] = velocity[one.name] * np.float32(MU) + total * np.float32(part)
            values[one.name] -= RATE * velocity[one.name]
        total = np.zeros((50, 3), "float32")
        for _, ids, rows in given:
            total[ids] += rows
        values["users"] -= RATE * (total * np.float32(part))
    return values


def is_right(found, workers):
    """Whether a worker ended with the bits of one process."""
    expected = by_numpy(workers)
    return found.keys() == expected.keys() and all(np.array_equal(found[name], expected[name]) for name in found)
