"""A driver's log comes whole and once over a connection that breaks, and a frozen head is no silent job."""

from __future__ import annotations

import hashlib
import http.server
import json
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from midwatch.rules.detectors.limits import WatchLimits
from midwatch.shippers.files.tail import Now
from midwatch.shippers.ray.driver_log import FRESH_S, DriverLog, DriverLogFile
from midwatch.streams.services.ray_jobs import RayHead
from processes import wait_for


@dataclass
class Head:
    """A head's API as far as a driver's log needs it. The tail breaks off in the middle the first time.

    `late`: last bytes of the log, which an agent under load serves late. `missed`: last bytes that the tail
    of a running job does not bring, because the driver wrote them between the agent's last look and its end.
    """

    text: str
    status: str = "RUNNING"
    agent: bool = True
    breaks: int = 1
    late: int = 0
    missed: int = 0
    tails: int = 0
    seen: list[str] = field(default_factory=list)
    address: str = ""


def _frame(kind: int, content: bytes) -> bytes:
    size = len(content)
    length = bytes([size]) if size < 126 else b"\x7e" + struct.pack("!H", size)
    return bytes([0x80 | kind]) + length + content


def _handler(head: Head) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            head.seen.append(self.headers.get("Authorization", ""))
            if self.path.endswith("/logs/tail"):
                self._tail()
                return
            found = head.agent or not self.path.startswith("/api/v0/logs")
            body = json.dumps({"status": head.status, "driver_node_id": "n1"}).encode()
            self.send_response(200 if found else 500)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _tail(self) -> None:
            head.tails += 1
            self.close_connection = True
            self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n")
            text = head.text.encode()
            broken = head.tails <= head.breaks
            text, last = text[: len(text) - head.late], text[len(text) - head.late :]
            if head.status == "RUNNING":
                text = text[: len(text) - head.missed]
            for at in range(0, len(text) // 2 if broken else len(text), 300):
                self.wfile.write(_frame(1, text[at : min(at + 300, len(text) // 2) if broken else at + 300]))
            while not broken and head.status == "RUNNING":
                time.sleep(0.05)  # the log may still grow
            while not broken and head.late:
                time.sleep(0.05)  # the test has not yet asked for the rest
            if not broken:
                self.wfile.write(_frame(1, last))
                self.wfile.write(_frame(8, struct.pack("!H", 1000)))

        def log_message(self, *_: Any) -> None:
            return

    return Handler


@pytest.fixture
def head() -> Iterator[Head]:
    made = Head("".join(f"line {hashlib.sha256(bytes([n])).hexdigest()}\n" for n in range(60)))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(made))
    server.daemon_threads = True
    made.address = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield made
    made.status = "SUCCEEDED"
    server.shutdown()


def test_what_came_before_the_break_comes_once_and_the_rest_after_it(head: Head, tmp_path: Path) -> None:
    file, said = tmp_path / "driver.log", list[str]()
    log = DriverLog(RayHead(head.address, "secret"), "a1", file, said.append)
    log.start()
    wait_for(lambda: file.exists() and file.read_text() == head.text, "the whole log", 30)
    assert not log.complete
    head.status = "SUCCEEDED"
    wait_for(lambda: log.complete, "the end of the log", 30)
    assert file.read_text() == head.text
    assert head.tails == 3  # the one that broke, the one of the running job, and one after its end
    assert set(head.seen) == {"Bearer secret"}


def test_while_the_agent_beside_the_driver_is_frozen_the_shipper_is_blind(head: Head, tmp_path: Path) -> None:
    file = tmp_path / "driver.log"
    log = DriverLog(RayHead(head.address), "a1", file, lambda _: None)
    source = DriverLogFile(log, file, "checkpoint", ())
    log.start()
    wait_for(lambda: log.fresh(time.monotonic()), "the first answer", 30)
    head.agent = False
    later = time.monotonic() + FRESH_S + 5
    source.poll(Now(time.time(), later))
    assert source.blind
    head.agent = True
    wait_for(lambda: log.fresh(time.monotonic()), "the next answer", 30)
    source.poll(Now(time.time(), time.monotonic()), rescan=True)
    assert not source.blind
    assert not source.ended
    source.close()


def test_the_end_of_a_job_is_vouched_for_only_with_its_whole_log(head: Head, tmp_path: Path) -> None:
    head.breaks, head.late = 0, 100
    file = tmp_path / "driver.log"
    log = DriverLog(RayHead(head.address), "a1", file, lambda _: None)
    source = DriverLogFile(log, file, "checkpoint", ())
    log.start()
    wait_for(lambda: log.fresh(time.monotonic()), "the first answer", 30)
    head.status = "SUCCEEDED"
    wait_for(lambda: log.over, "the end is seen", 30)
    source.poll(Now(time.time(), time.monotonic()))
    assert source.blind
    head.late = 0
    wait_for(lambda: log.complete, "the end of the log", 30)
    source.poll(Now(time.time(), time.monotonic()), rescan=True)
    assert not source.blind
    assert source.ended
    assert file.read_text() == head.text
    source.close()


def test_last_words_that_the_running_tail_missed_are_read_after_the_end(head: Head, tmp_path: Path) -> None:
    head.breaks, head.missed = 0, 100
    file = tmp_path / "driver.log"
    log = DriverLog(RayHead(head.address), "a1", file, lambda _: None)
    log.start()
    wait_for(lambda: file.exists() and file.read_text() == head.text[:-100], "all but the last words", 30)
    head.status = "SUCCEEDED"
    wait_for(lambda: log.complete, "the end of the log", 30)
    assert file.read_text() == head.text


def test_an_answer_vouches_no_longer_than_detect_waits_after_an_end() -> None:
    """Detect takes a heartbeat from behind an end plus its grace as word that all lines of it have come."""
    assert WatchLimits().grace >= FRESH_S
