"""The exchange of sums of squares between servers: of any length, in any order, refused where damaged."""

import numpy as np
import pytest

from fleet_mpi.errors import PeerLost
from fleet_mpi.parameter_server import exchange, messages
from fleet_mpi.parameter_server.exchange import Exchange
from fleet_mpi.ranks.channels import Channel
from fleet_mpi.update_rules import square_nodes, square_sum
from fleet_mpi.wire import protocol
from fleet_mpi.wire.loopback import Network
from fleet_mpi.wire.protocol import Header, Kind


def pair():
    """A network and the exchanges of two servers."""
    network = Network()
    return network, [Exchange(network.transport(index), index, [0, 1], "server {}".format) for index in range(2)]


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
    assert len(messages.encode(found)) <= exchange.ROOM
