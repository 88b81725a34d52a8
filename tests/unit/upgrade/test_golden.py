"""What earlier versions wrote is read, and what must not change is written as they wrote it.

`golden/COMMIT/` holds what that commit wrote; the files are never changed. Where a record gets a field, the
older files stay as they are: they must still be read. `write_golden` writes new ones beside them.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from midwatch.agents.executor.arming import arming, lift_disarm_all
from midwatch.agents.rulesets.content import bundle_hash, content
from midwatch.agents.schedulers.local import effect_file
from midwatch.agents.schedulers.wrapping import verified_script
from midwatch.agents.signing import load_verifier
from midwatch.agents.watcher.cancellation_notes import cancellation_of
from midwatch.shippers.files.sent_positions import ShipperDirectory
from midwatch.shippers.ship import checkpoint_directory
from midwatch.streams.records import Command, codec
from unit.upgrade import written
from unit.upgrade.filled import JOB, filled

FOLDERS = sorted(Path(__file__).with_name("golden").iterdir())
LINES = [(f.name, line) for f in FOLDERS for line in (f / "records.jsonl").read_bytes().splitlines()]


@pytest.fixture(params=FOLDERS, ids=lambda folder: str(folder.name))
def golden(request: pytest.FixtureRequest) -> Path:
    """What one commit wrote."""
    return Path(request.param)


def _read(golden: Path, name: str) -> Any:
    return json.loads((golden / f"{name}.json").read_bytes())


def _kind(line: bytes) -> str:
    return str(json.loads(line)["record"])


@pytest.mark.parametrize("line", [line for _, line in LINES], ids=[f"{at}-{_kind(li)}" for at, li in LINES])
def test_every_field_of_an_earlier_record_is_read_and_said_again(line: bytes) -> None:
    record = codec.decode(line)
    again = codec.encode(record)
    assert codec.decode(again) == record
    assert _lacks(json.loads(again), json.loads(line)) == []


def test_every_kind_of_record_has_its_golden_line() -> None:
    assert {_kind(line) for _, line in LINES} >= written.kinds().keys(), "write_golden records what is new"


def _lacks(ours: Any, theirs: Any, at: str = "") -> list[str]:
    """Where ours does not say what theirs says; what ours says besides is new."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return [lack for name in theirs for lack in _lacks(ours.get(name), theirs[name], f"{at}.{name}")]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [
            x for n, pair in enumerate(zip(ours, theirs, strict=True)) for x in _lacks(*pair, f"{at}[{n}]")
        ]
    return [] if ours == theirs else [f"{at}: {ours!r} where {theirs!r} was written"]


def test_a_chunk_is_read_and_written_as_it_was(golden: Path) -> None:
    text, headers = _read(golden, "chunk")
    named = tuple((name, value.encode()) for name, value in headers)
    again = codec.encode_log(codec.decode_log(text.encode(), named))
    assert (again.value.decode(), [[n, v.decode()] for n, v in again.headers]) == (text, headers)


@pytest.mark.parametrize("kind", ["command", "spec"])
def test_a_signature_covers_the_bytes_that_it_covered(golden: Path, kind: str, tmp_path: Path) -> None:
    was = _read(golden, "signed")[kind]
    (line,) = [line for at, line in LINES if at == golden.name and _kind(line) == kind]
    record = codec.decode(line)
    assert codec.canonical(record).decode() == was["canonical"]
    assert written.signed(tmp_path, record) == was["signature"], "the kind's name stands before the bytes"
    for name, text in _read(golden, "state_directory").items():
        if name == "signing.pub":
            (tmp_path / name).write_bytes(_bytes(text))
    assert load_verifier(tmp_path).accepts(dataclasses.replace(record, signature=was["signature"]))


def test_a_bundle_of_rules_still_has_the_hash_that_names_it(golden: Path) -> None:
    record, name = codec.decode((golden / "bundle.json").read_bytes()), (golden / "bundle.hash").read_text()
    assert bundle_hash(record) == name.strip()
    assert len(content(name.strip(), record).rules) == len(record.rules)


def test_an_order_that_an_earlier_executor_worked_on_is_read_and_kept_as_it_was(golden: Path) -> None:
    body = (golden / "claim.json").read_bytes().strip()
    found, known = written.open_claim(body)
    assert found.turn == 2
    assert found.memory == known.words(), "no word of it is forgotten"
    assert (found.command, written.claim()) == (filled(Command), body)


def test_names_are_as_they_were(golden: Path, tmp_path: Path) -> None:
    was, now = _read(golden, "names"), written.names(tmp_path)
    assert set(was.pop("variables")) <= set(now.pop("variables")), "a kept spec names settings by variables"
    assert _lacks(now, was) == []


def _bytes(text: str) -> bytes:
    return base64.b64decode(text.removeprefix("base64:")) if text.startswith("base64:") else text.encode()


def _unpack(golden: Path, directory: Path) -> None:
    for name, text in _read(golden, "state_directory").items():
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_bytes(text))


def test_files_of_a_state_directory_are_written_as_they_were(
    golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "ada")
    was, now = _read(golden, "state_directory"), written.state_directory(tmp_path)
    assert _lacks(now, was) == []


def test_an_earlier_state_directory_is_read(golden: Path, tmp_path: Path) -> None:
    _unpack(golden, tmp_path)
    assert arming(tmp_path, JOB, armed_by_spec=False).reason == "everything was disarmed by ada"
    assert lift_disarm_all(tmp_path)
    assert arming(tmp_path, JOB, armed_by_spec=False).reason == "armed by ada"
    (effect,) = effect_file.read_all(tmp_path)
    assert (effect.key, effect.code, effect.argv) == (written.EFFECT, 1, ("python", "train.py"))
    ending = cancellation_of(tmp_path, written.INCARNATION)
    assert ending is not None
    assert ending.person == "ada"
    (script,) = (tmp_path / "scripts").iterdir()
    assert verified_script(script) == b"#!/bin/sh\nexec true\n"
    shipper = ShipperDirectory(checkpoint_directory(tmp_path, JOB, "n0"))
    assert shipper.load() == written.checkpoint()
    shipper.close()
    assert not written.joined(tmp_path), "the executor's claims are not taken for lost"
