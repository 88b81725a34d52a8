"""The sidecar's loop with a producer that falls silent: kafka-python's was seen to do so after an outage."""

from __future__ import annotations

import signal
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from midwatch.shippers import sidecar
from midwatch.shippers.files.followed import FollowedFiles
from midwatch.shippers.files.sent_positions import ShipperDirectory
from midwatch.shippers.sending.ledger import Future
from midwatch.shippers.sending.publish import Publisher
from midwatch.shippers.sidecar import Ends, Sidecar
from midwatch.streams.records import Chunk
from midwatch.streams.records.codec import Encoded, decode_log
from midwatch.streams.settings.schema import ShipSettings
from processes import wait_for
from unit.shippers.reading import ORIGIN


@dataclass
class Sent:
    """A future of kafka-python's, as far as the sidecar looks at it."""

    is_done: bool = False
    exception: BaseException | None = None


@dataclass
class SilentAtFirst:
    """Its first producer takes everything and acknowledges nothing; the next one works."""

    ready: bool = True
    resets: int = 0
    arrived: list[str] = field(default_factory=list)

    def connect(self) -> None: ...

    def close(self) -> None: ...

    def reset(self) -> None:
        self.resets += 1

    def send(self, key: bytes, message: Encoded) -> Future:  # noqa: ARG002  # as the real one takes it
        if not self.resets:
            return Sent()
        record = decode_log(message.value, message.headers)
        if isinstance(record, Chunk):
            self.arrived += record.text.decode().splitlines()
        return Sent(is_done=True)


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> SilentAtFirst:
    monkeypatch.setattr(sidecar, "_SILENT", 0.2)
    monkeypatch.setattr(sidecar, "_LATE", 0.1)
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # it runs in a thread here
    return SilentAtFirst()


@pytest.mark.parametrize("printed", ["first\nsecond\n", ""], ids=["lines wait", "beats alone wait"])
def test_a_producer_that_never_answers_is_replaced_and_everything_sent_again(
    silent: SilentAtFirst, tmp_path: Path, printed: str
) -> None:
    (log := tmp_path / "train.log").write_text(printed)
    said: list[str] = []
    running = Sidecar(
        ORIGIN,
        FollowedFiles([str(log)], start="beginning", remembered=(), report=said.append),
        publisher=cast(Publisher, silent),
        state=ShipperDirectory(tmp_path / "state"),
        settings=ShipSettings(interval=0.5),
        ends=Ends(),
        report=said.append,
    )
    loop = threading.Thread(target=running.run)
    loop.start()
    try:
        wait_for(lambda: silent.resets, "the silent producer is given up")
        wait_for(lambda: silent.arrived == printed.splitlines(), "the lines arrive by another")
    finally:
        running.stop()
        loop.join()
    assert silent.resets == 1
    assert [text for text in said if "was acknowledged" in text]
    if printed:
        assert said[-1] == "Kafka is back"
