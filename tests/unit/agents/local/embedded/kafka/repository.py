"""A Maven repository on loopback, whose answers a test decides."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Repository:
    """Serves `files` by path. `failures` are statuses to answer first, `cut` paths that end too early."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    failures: list[int] = field(default_factory=list)
    cut: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)


@contextmanager
def serving() -> Iterator[Repository]:
    repository = Repository()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            repository.asked.append(self.path)
            content = repository.files.get(self.path)
            status = (
                repository.failures.pop(0) if repository.failures else 200 if content is not None else 404
            )
            content = content if status == 200 and content is not None else b"<html>no</html>"
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.path in repository.cut:
                repository.cut.discard(self.path)
                content = content[: len(content) // 2]
                self.close_connection = True
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    repository.address = f"http://127.0.0.1:{server.server_address[1]}/base"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield repository
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
