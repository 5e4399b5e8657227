"""Updates that need norms stay in step, whoever has something to ask; the exchange of sums of squares between servers
takes any length, in any order, and refuses what is damaged."""

import numpy as np
import pytest

from fleet_mpi.errors import PeerLost
from fleet_mpi.parameter_server import messages, norms
from fleet_mpi.parameter_server.recipes import Bound, BoundNorm, Decay, recipe
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.update_rules import square_nodes, square_sum
from fleet_mpi.wire import protocol
from fleet_mpi.wire.loopback import Network
from fleet_mpi.wire.protocol import Header, Kind

GROUP = BoundNorm(1.0, "all")
RECIPES = {"b": recipe("sgd", steps=(Bound(-1, 1), GROUP)), "a": recipe("sgd", steps=(Decay(0.1), GROUP)),
           "c": recipe("sgd", steps=(Bound(-1, 1), Decay(0.1), BoundNorm(2.0))), "d": recipe("sgd")}


def test_every_server_asks_where_any_variable_of_the_job_has_a_norm():
    assert [norms.asks_at(RECIPES, position) for position in range(norms.most_steps(RECIPES))] == [False, True, True]
    assert not norms.asks_at_the_end(RECIPES) and norms.asks_at_the_end({**RECIPES, "e": recipe("lamb")})
    assert norms.most_steps({}) == 0


def test_the_sum_of_a_group_is_added_up_in_order_of_names():
    sums = {("a", "gradient"): np.array([1e16]), ("b", "gradient"): np.array([1.0]), ("c", "gradient"): np.array([4.0])}
    assert norms.sum_for(GROUP, "b", RECIPES, sums) == np.array([1e16]) + 1.0
    assert norms.sum_for(BoundNorm(2.0), "c", RECIPES, sums) == 4.0


class Asked:
    """A gradient that notes what is done with it; its squares are a number."""

    def __init__(self, variable, recipe, square, what=()):
        self.variable, self.recipe, self.square, self.what, self.done = variable, recipe, square, what, []

    def nodes(self):
        """One."""
        return [self.square]

    def measure(self):
        """As the rule would."""
        return {what: [self.square] for what in self.what}

    def apply(self, step):
        """Note the step."""
        self.done.append(step)

    def scale(self, factor):
        """Note the factor."""
        self.done.append(float(factor[0]))

    def finish(self, squares):
        """Note the sums."""
        self.done.append(squares)


def driven(update):
    """What an update asks for, answered with the sums of the numbers."""
    asked, sums = [], None
    while True:
        try:
            asked.append(update.send(sums))
        except StopIteration:
            return asked
        sums = {name: np.array([float(sum(nodes))]) for name, nodes in asked[-1].items()}


def test_an_update_asks_for_what_each_step_needs_parts_of_a_variable_together():
    norm, bound = BoundNorm(1.0), Bound(-1, 1)
    recipes = {"a": recipe("lamb", steps=(bound, norm)), "b": recipe("sgd", steps=(norm,))}
    first, second = (Asked("a", recipes["a"], square, ("param", "direction")) for square in (9.0, 7.0))
    other = Asked("b", recipes["b"], 4.0)
    assert driven(norms.update([first, second, other], recipes)) == [
        {("b", "gradient"): [4.0]}, {("a", "gradient"): [9.0, 7.0]},
        {("a", "param"): [9.0, 7.0], ("a", "direction"): [9.0, 7.0]}]
    assert first.done == second.done == [bound, 0.25, (16.0, 16.0)] and other.done == [0.5, ()]


def test_a_server_with_nothing_to_ask_for_asks_as_often():
    assert driven(norms.update([], RECIPES)) == [{}, {}]
    assert driven(norms.update([], {**RECIPES, "e": recipe("lamb")})) == [{}, {}, {}]
    assert driven(norms.update([], {})) == []


def pair():
    """A network and the exchanges of two servers."""
    network = Network()
    return network, [norms.Exchange(network.transport(index), index, [0, 1], "server {}".format) for index in range(2)]


def asking(nodes, heard):
    """An update that wants the sums of these nodes."""
    heard.append((yield nodes))


def together(servers):
    """Let both go on until nothing happens."""
    while any([server.advance() for server in servers]):
        pass


@pytest.mark.parametrize("variables", (1, 3000), ids=("in one message", "with a body"))
def test_sums_are_those_of_the_whole(variables, monkeypatch):
    monkeypatch.setattr(protocol, "LARGEST", 1 << 15)
    _, servers = pair()
    values = np.random.default_rng(1).normal(size=1000).astype("float32")
    halves, heard, ended = ((values[:300], 0), (values[300:], 300)), [[], []], []
    for server, (half, start), answer in zip(servers, halves, heard):
        nodes = {(f"w{number}", "gradient"): square_nodes(half, start) for number in range(variables)}
        server.run((0, 7), asking(nodes, answer), lambda: ended.append(1))
    together(servers)
    assert len(ended) == 2 and heard[0] == heard[1]
    assert all(one == square_sum(values) for one in heard[0][0].values()) and len(heard[0][0]) == variables


def test_exchanges_of_several_pushes_do_not_mix():
    _, servers = pair()
    heard = {}
    for server, order in zip(servers, ((1, 2), (2, 1))):
        for step in order:
            nodes = {("w", "gradient"): square_nodes(np.full(1, step, "float32"), server.index)}
            server.run((0, step), asking(nodes, heard.setdefault((server.index, step), [])), lambda: None)
    together(servers)
    assert {key: float(answer[0]["w", "gradient"][0]) for key, answer in heard.items()} == {
        (0, 1): 2.0, (1, 1): 2.0, (0, 2): 8.0, (1, 2): 8.0}


@pytest.mark.parametrize("header, content", (
    (Header(Kind.SQUARES, 1), b"no json"), (Header(Kind.SQUARES, 1), b"[[1, 2]]"),
    (Header(Kind.SQUARES, 1, body=1 << 62), b"")), ids=("no JSON", "no nodes", "more than there is memory for"))
def test_damaged_sums_are_refused(header, content):
    network, servers = pair()
    network.send(1, 0, Channel.BETWEEN_SERVERS, messages.message(header, content))
    with pytest.raises(PeerLost, match="server 1"):
        servers[0].advance()


def test_room_holds_the_norms_of_a_usual_model():
    """161 variables, as ResNet-50 has, each cut in two somewhere: no body, so one message per server."""
    found = [[["conv1_weights.some.longer.name", "gradient"], [[5, 1, (0.1).hex()]] * 8]] * 161
    assert len(messages.encode(found)) <= norms.ROOM
