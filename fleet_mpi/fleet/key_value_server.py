"""Keys and values by HTTP: what the original's processes meet by, for scripts that start it themselves.

Ranks of a job meet over MPI and need none of it. It listens on this machine only (127.0.0.1), and holds values in
memory. ``PUT /scope/key`` stores, ``GET`` gives back, ``DELETE`` tells that a client is done with a key.
"""

from __future__ import annotations

import http.server
import threading
from typing import TYPE_CHECKING

from fleet_mpi.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_MOST_BYTES = 1 << 26  # values are addresses and counts; more is a mistake


class KVHandler(http.server.BaseHTTPRequestHandler):
    """Answers one request from the dictionaries of its server."""

    server: KVHTTPServer

    def do_GET(self) -> None:
        """The value of a key; 404 where there is none."""
        scope, key = self._asked()
        with self.server.kv_lock:
            value = self.server.kv.get(scope, {}).get(key)
        self._answer(404 if value is None else 200, value or b"")

    def do_PUT(self) -> None:
        """Store the body under a key."""
        scope, key = self._asked()
        length = int(self.headers.get("Content-Length") or 0)
        if not key or not 0 <= length <= _MOST_BYTES:
            return self._answer(400)
        value = self.rfile.read(length)
        with self.server.kv_lock:
            self.server.kv.setdefault(scope, {})[key] = value
        return self._answer(200)

    def do_DELETE(self) -> None:
        """Count a key as done with."""
        scope, key = self._asked()
        with self.server.delete_kv_lock:
            self.server.delete_kv.setdefault(scope, set()).add(key)
        self._answer(200)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: requests are no events."""

    def _asked(self) -> tuple[str, str]:
        """(scope, key) of ``/scope/key``; a longer path ends with its key."""
        scope, _, key = self.path.strip("/").rpartition("/")
        return scope, key

    def _answer(self, code: int, body: bytes = b"") -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class KVHTTPServer(http.server.ThreadingHTTPServer):
    """Holds the values of all scopes; port 0 lets the system choose one (``server_port``)."""

    daemon_threads = True

    def __init__(self, port: int, handler: type[KVHandler]) -> None:
        super().__init__(("127.0.0.1", port), handler)
        self.kv: dict[str, dict[str, bytes]] = {}
        self.delete_kv: dict[str, set[str]] = {}
        self.kv_lock, self.delete_kv_lock = threading.Lock(), threading.Lock()

    def get_deleted_size(self, key: str) -> int:
        """How many keys of a scope clients are done with."""
        with self.delete_kv_lock:
            return len(self.delete_kv.get(key, ()))


class KVServer:
    """A KVHTTPServer in a thread; ``size`` has, per scope, how many keys are to be deleted before it may stop."""

    def __init__(self, port: int, size: Mapping[str, int] | None = None) -> None:
        self.http_server = KVHTTPServer(port, KVHandler)
        self.size = dict(size or {})
        self.listen_thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to answer."""
        if self.listen_thread is not None:
            raise UsageError("KVServer.start: it was started before; make another one")
        self.listen_thread = threading.Thread(target=self.http_server.serve_forever, daemon=True)
        self.listen_thread.start()

    def stop(self) -> None:
        """Answer no more; returns when the port is free."""
        if self.listen_thread is not None and self.listen_thread.is_alive():
            self.http_server.shutdown()
            self.listen_thread.join()
        self.http_server.server_close()

    def should_stop(self) -> bool:
        """Whether clients are done with as many keys as there are."""
        return all(self.http_server.get_deleted_size(scope) == count for scope, count in self.size.items())

    shoud_stop = should_stop  # the original's own spelling
