"""Local sinks for messages: an HTTP server and a mail server that take, refuse, hang, or ask for patience."""

from __future__ import annotations

import contextlib
import json
import socketserver
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """How the sink answers one request. `hang_s`: it says nothing for so long."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b'{"ok": true}'
    hang_s: float = 0.0


OK = Answer()
FAILS = Answer(500, body=b"no")
GONE = Answer(404, body=b"no_team")
HANGS = Answer(hang_s=60.0)


def busy(seconds: int) -> Answer:
    return Answer(429, (("Retry-After", str(seconds)),), b"slow down")


@dataclass
class Request:
    """What somebody posted, when it came (our monotonic clock), and how the sink answered."""

    path: str
    headers: dict[str, str]
    body: bytes
    at: float
    answer: Answer

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class HttpSink:
    """`answers` are used up one by one; then the sink answers `usual`."""

    url: str = ""
    usual: Answer = OK
    answers: deque[Answer] = field(default_factory=deque)
    requests: list[Request] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def taken(self) -> list[Request]:
        """Those that the sink took."""
        return [each for each in self.requests if each.answer.status == 200 and not each.answer.hang_s]


@contextlib.contextmanager
def http_sink(*answers: Answer, usual: Answer = OK) -> Iterator[HttpSink]:
    sink = HttpSink(usual=usual, answers=deque(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer = sink.answers.popleft() if sink.answers else sink.usual
            about = {name.lower(): value for name, value in self.headers.items()}
            sink.requests.append(Request(self.path, about, body, time.monotonic(), answer))
            if answer.hang_s:
                sink.over.wait(answer.hang_s)
                return
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.send_response(answer.status)
                for name, value in (*answer.headers, ("Content-Length", str(len(answer.body)))):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name in the base class)
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    sink.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield sink
    finally:
        sink.over.set()
        server.shutdown()
        server.server_close()


@dataclass
class MailSink:
    """`refusals` are used up one by one as the answer to RCPT, such as `550 no`; then all is taken."""

    address: str = ""
    refusals: deque[str] = field(default_factory=deque)
    hangs: bool = False
    mails: list[bytes] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)


@contextlib.contextmanager
def mail_sink(*refusals: str, hangs: bool = False) -> Iterator[MailSink]:
    sink = MailSink(refusals=deque(refusals), hangs=hangs)

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            if sink.hangs:
                sink.over.wait(60)
                return
            self._say("220 sink")
            while line := self.rfile.readline().strip():
                word = line[:4].upper()
                if word == b"DATA":
                    self._say("354 go on")
                    sink.mails.append(self._data())
                    self._say("250 taken")
                elif word == b"RCPT" and sink.refusals:
                    self._say(sink.refusals.popleft())
                elif word == b"QUIT":
                    self._say("221 bye")
                    return
                else:
                    self._say("250 fine")

        def _say(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

        def _data(self) -> bytes:
            lines = []
            while (line := self.rfile.readline()) not in (b".\r\n", b""):
                lines.append(line[1:] if line.startswith(b"..") else line)
            return b"".join(lines)

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    sink.address = f"127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield sink
    finally:
        sink.over.set()
        server.shutdown()
        server.server_close()
