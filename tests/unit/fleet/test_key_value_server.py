"""Keys and values by HTTP: on this machine only, stored, given back, and told to be done with."""

import urllib.error
import urllib.request

import pytest

from fleet_mpi.errors import UsageError
from fleet_mpi.fleet.key_value_server import KVServer


@pytest.fixture
def server():
    made = KVServer(0, {"barrier": 2})
    made.start()
    yield made
    made.stop()


def ask(server, method, path, body=None):
    url = f"http://127.0.0.1:{server.http_server.server_port}/{path}"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(url, body, method=method), timeout=10) as answer:
        return answer.read()


def test_a_value_is_given_back(server):
    ask(server, "PUT", "worker/0", b"host:1")
    ask(server, "PUT", "worker/0", b"host:2")
    assert ask(server, "GET", "worker/0") == b"host:2"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        ask(server, "GET", "worker/1")
    with pytest.raises(urllib.error.HTTPError, match="400"):
        ask(server, "PUT", "", b"host")


def test_it_listens_on_this_machine_only(server):
    assert server.http_server.server_address[0] == "127.0.0.1"


def test_it_may_stop_when_all_keys_are_done_with(server):
    ask(server, "DELETE", "barrier/0")
    assert not server.should_stop()
    ask(server, "DELETE", "barrier/0")
    assert not server.should_stop() and server.http_server.get_deleted_size("barrier") == 1
    ask(server, "DELETE", "barrier/1")
    assert server.should_stop()


def test_it_is_started_once_and_stops_twice(server):
    with pytest.raises(UsageError, match="make another one"):
        server.start()
    server.stop()
    server.stop()
