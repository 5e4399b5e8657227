"""Any cut of a table is updated to the bits of the rule on whole arrays."""

import numpy as np
import pytest

from fleet_mpi import update_rules
from fleet_mpi.parameter_server import norms
from fleet_mpi.parameter_server.flat import FlatLayout, ServerImage
from fleet_mpi.parameter_server.recipes import Bound, BoundNorm, Decay, recipe
from fleet_mpi.parameter_server.tables.dense import DenseTable
from fleet_mpi.placement import Variable, place
from fleet_mpi.wire import protocol

# Compression chooses the largest of a whole gradient: it is for collective training, and servers are given none.
RULES = [name for name in update_rules.RULES if name != "dgc_momentum"]
VARIABLES = [Variable("a", (30, 20)), Variable("b", (7,)), Variable("c", (9, 5), "float64"), Variable("d", (64,)),
             Variable("e", (50, 12))]
STEPS = {"none": (), "decays": (Decay(0.01), Decay(0.02, of_sign=True)), "bound": (Bound(-0.5, 0.25), Decay(0.1)),
         "own norm": (BoundNorm(0.5),), "common norm": (Decay(0.01), BoundNorm(1.0, "all"), Bound(-0.1, 0.1))}


class Tables:
    """The tables of all servers, played by hand."""

    def __init__(self, servers, recipes, variables=VARIABLES, **cut):
        self.layout, self.rates = FlatLayout(variables), {"lr": np.array([0.05], np.float32)}
        placement = place(variables, servers, min_block_size=50, **cut)
        self.tables = [DenseTable(ServerImage(self.layout, placement.of_server(number)), recipes, self.rates)
                       for number in range(servers)]

    def put(self, values):
        """Set the parameters."""
        for table in self.tables:
            for shard in table.shards():
                part = values[shard.variable].reshape(-1)[shard.offset:shard.offset + shard.size]
                table.param(shard.variable, shard.block)[...] = part.reshape(shard.shape)

    def update(self, gradients):
        """One update by whole gradients."""
        flat = self.layout.new_array()
        for name, view in self.layout.views(flat).items():
            view[...] = gradients[name]
        images = []
        for table in self.tables:
            images.append(np.zeros(table.image.nbytes, np.uint8))
            for piece in table.image.pieces:
                piece.gather(flat, images[-1][piece.start:piece.stop])
        if self.tables[0].needs_norms:
            self._with_norms([norms.update(table.gradients([table.read(image)]), table.recipes)
                              for table, image in zip(self.tables, images)])
            return
        for table, image in zip(self.tables, images):
            table.update([table.read(image)])

    def _with_norms(self, updates):
        sums = None
        while True:
            asked = []
            for update in updates:
                try:
                    asked.append(update.send(sums))
                except StopIteration:
                    asked.append(None)
            if None in asked:
                assert asked == [None] * len(asked)   # all servers ask equally often
                return
            names = {name for one in asked for name in one}
            sums = {name: update_rules.join_squares([node for one in asked for node in one.get(name, [])])
                    for name in names}

    def whole(self, read):
        """{variable: array} from ``read(table, shard)`` of all shards."""
        found = {variable.name: [] for variable in self.layout.variables.values()}
        shards = [(shard, table) for table in self.tables for shard in table.shards()]
        for shard, table in sorted(shards, key=lambda pair: (pair[0].variable, pair[0].block)):
            found[shard.variable].append(np.array(read(table, shard)).reshape(-1))
        return found


def drawn(seed):
    rng = np.random.default_rng(seed)
    return {one.name: rng.normal(size=one.shape).astype(one.dtype) for one in VARIABLES}


class Alone:
    """One process with whole arrays."""

    def __init__(self, recipes, values):
        self.recipes, self.params = recipes, {name: array.copy() for name, array in values.items()}
        self.states = {name: update_rules.RULES[one.rule].new_states(self.params[name])
                       for name, one in recipes.items()}

    def update(self, gradients, rate):
        """One update; gradients are changed."""
        most = max(len(one.steps) for one in self.recipes.values())
        for position in range(most):
            total = sum((update_rules.square_sum(gradients[name].reshape(-1)) for name in sorted(gradients)),
                        np.zeros(1))
            for name, one in self.recipes.items():
                if position < len(one.steps):
                    self._step(one.steps[position], gradients[name], self.params[name], total)
        for name, one in self.recipes.items():
            update_rules.RULES[one.rule].run(self.params[name], gradients[name], rate, *self.states[name])

    def _step(self, step, grad, param, total):
        if isinstance(step, BoundNorm):
            squares = total if step.group else update_rules.square_sum(grad.reshape(-1))
            np.multiply(grad, step.factor(squares).astype(grad.dtype), out=grad)
        else:
            step.apply(grad, param, np.empty_like(grad))


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("rule", RULES)
def test_every_cut_gives_the_bits_of_the_rule_on_whole_arrays(rule, steps, monkeypatch):
    monkeypatch.setattr(protocol, "PIECE", 1024)
    monkeypatch.setattr(protocol, "LONG_RUN", 256)
    recipes = {one.name: recipe(rule, "lr", STEPS[steps]) for one in VARIABLES}
    alone = Alone(recipes, drawn(0))
    cuts = [Tables(1, recipes), Tables(3, recipes), Tables(2, recipes, slice_up=False, method="HashName")]
    for tables in cuts:
        tables.put(drawn(0))
    for number in range(1, 4):
        for tables in cuts:
            tables.update(drawn(number))
        alone.update(drawn(number), cuts[0].rates["lr"])
    for tables in cuts:
        for name, parts in tables.whole(lambda table, shard: table.param(shard.variable, shard.block)).items():
            assert np.concatenate(parts).tobytes() == alone.params[name].tobytes(), name
        for position, state in enumerate(update_rules.RULES[rule].states):
            kept = tables.whole(lambda table, shard: table.state(shard.variable, shard.block, state.name))
            for name, parts in kept.items():
                expected = alone.states[name][position]
                found = np.concatenate(parts) if state.like_param else np.unique(parts)
                assert (found.dtype, found.tobytes()) == (expected.dtype, expected.tobytes()), (name, state.name)


def test_neighbours_with_one_recipe_are_updated_in_one_call():
    recipes = {one.name: recipe("adam", "lr", states=[("moment1", one.name + "_m")]) for one in VARIABLES}
    segments = Tables(1, recipes).tables[0].segments
    assert [[segment.dtype.name for segment in piece] for piece in segments] == [["float32", "float64", "float32"]]
    recipes["b"] = recipe("adam", "lr", beta1=0.5)
    assert len(Tables(1, recipes).tables[0].segments[0]) == 4


def test_states_start_as_the_rule_says_and_are_known_by_name():
    recipes = {one.name: recipe("adagrad", "lr", initial_accumulator_value=0.25) for one in VARIABLES}
    table = Tables(1, recipes).tables[0]
    assert (table.state("c", 0, "moment") == 0.25).all() and table.state("c", 0, "moment").dtype == np.float64
    table.set_state("a", 0, "moment", np.full((30, 20), 3))
    assert (table.state("a", 0, "moment") == 3).all() and (table.state("b", 0, "moment") == 0.25).all()


def test_one_number_per_variable_is_given_out_as_a_copy_and_set_everywhere(monkeypatch):
    monkeypatch.setattr(protocol, "PIECE", 1024)
    monkeypatch.setattr(protocol, "LONG_RUN", 256)
    recipes = {one.name: recipe("adam", "lr", beta1=0.75) for one in VARIABLES}
    table = Tables(1, recipes).tables[0]
    table.state("a", 0, "beta1_pow_acc")[...] = 9
    assert table.state("a", 0, "beta1_pow_acc") == np.float32(0.75)
    table.set_state("a", 0, "beta1_pow_acc", np.array([0.5], np.float32))
    held = [segment.small["beta1_pow_acc"][0] for piece in table.segments for segment in piece if segment.start < 2400]
    assert len(held) > 2 and set(held) == {0.5}


def test_variables_of_other_recipes_keep_their_own():
    recipes = {one.name: recipe("sgd", "lr") for one in VARIABLES} | {"b": recipe("momentum", "lr", mu=0.5)}
    tables, alone = Tables(2, recipes), Alone(recipes, drawn(0))
    tables.put(drawn(0))
    tables.update(drawn(1))
    alone.update(drawn(1), tables.rates["lr"])
    found = tables.whole(lambda table, shard: table.param(shard.variable, shard.block))
    assert all(np.concatenate(parts).tobytes() == alone.params[name].tobytes() for name, parts in found.items())
