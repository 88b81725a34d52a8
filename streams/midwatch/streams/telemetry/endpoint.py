"""The http endpoint of a process: `/metrics` for Prometheus, `/ready` and `/live` for whoever supervises it.

`/ready` answers 503 with its reasons while the process does not see all that it must see. A watcher that sees
nothing is `unknown`, never healthy. `/live` says only that the process runs.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from midwatch.streams.telemetry.meter import Health

log = logging.getLogger(__name__)

Metrics = Callable[[], tuple[bytes, str]]
"""The body of `/metrics` and its content type."""


class Endpoint:
    """One listening thread. An address that is taken is logged, and the process goes on without it."""

    def __init__(self, address: tuple[str, int], metrics: Metrics, health: Callable[[], Health]) -> None:
        self._server: ThreadingHTTPServer | None = None
        answers = {"metrics": staticmethod(metrics), "health": staticmethod(health)}
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        listener = type("Listener", (ThreadingHTTPServer,), {"address_family": family})
        try:
            self._server = listener(address, type("Asked", (_Handler,), answers))
        except OSError as error:
            log.error("no metrics at %s:%d: %s; the watch goes on without them", *address, error)
            return
        threading.Thread(target=self._server.serve_forever, name="telemetry", daemon=True).start()
        log.info("metrics and readiness at http://%s:%d", *address)

    def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    metrics: Metrics
    health: Callable[[], Health]
    timeout = 10

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            body, kind = type(self).metrics()
            self._answer(200, body, kind)
        elif path == "/ready":
            health = type(self).health()
            state = "ready" if health.ready else "unknown"
            body = json.dumps({"version": 1, "state": state, "reasons": health.reasons}).encode()
            self._answer(200 if health.ready else 503, body + b"\n", "application/json")
        elif path == "/live":
            self._answer(200, b"{}\n", "application/json")
        else:
            self._answer(404, b"/metrics, /ready, /live\n", "text/plain")

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """A scrape every few seconds is no news."""
