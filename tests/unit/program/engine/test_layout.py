"""Where temporaries lie: no two values that are needed at the same time share memory."""

import numpy as np
from hypothesis import given, settings, strategies as st

from fleet_mpi.program.engine.executor import Executor
from fleet_mpi.program.graph.program import Program, program_guard
from tests.unit.program.building import apply, data

SIZE = (600, 600)  # large enough for memory to be shared


def sum_of(one, other):
    return apply("elementwise_add", {"X": one, "Y": other})


def product_of(one, other):
    return apply("elementwise_mul", {"X": one, "Y": other})


def folded(one, other):
    flat = apply("reshape2", {"X": one}, shape=[-1])
    return sum_of(apply("reshape2", {"X": flat}, shape=list(SIZE)), other)


def copied(one, other):
    return apply("assign", {"X": one})


STEPS = {"sum": (sum_of, lambda a, b: a + b), "product": (product_of, lambda a, b: a * b),
         "view": (folded, lambda a, b: a + b), "copy": (copied, lambda a, b: a)}
chains = st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 30), st.integers(0, 30)), min_size=3,
                  max_size=14)


@settings(max_examples=25, deadline=None)
@given(chains, st.lists(st.integers(0, 30), min_size=1, max_size=3))
def test_a_chain_of_sums_products_views_and_copies_gives_what_numpy_gives(chain, wanted):
    program = Program()
    with program_guard(program, Program()):
        variables = [data("a", SIZE, "float64"), data("b", SIZE, "float64")]
        values = [np.full(SIZE, 0.75), np.full(SIZE, -0.5)]
        feed = dict(zip("ab", values))
        for name, i, j in chain:
            make, compute = STEPS[name]
            i, j = i % len(values), j % len(values)
            variables.append(make(variables[i], variables[j]))
            values.append(compute(values[i], values[j]))
    wanted = [one % len(values) for one in wanted]
    executor = Executor()
    for _ in range(2):
        found = executor.run(program, feed, [variables[i] for i in wanted])
        for got, i in zip(found, wanted):
            assert got[0, 0] == got[-1, -1] == values[i][0, 0]
