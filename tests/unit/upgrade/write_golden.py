"""Writes what this version writes, `golden/NAME/`: `python -m unit.upgrade.write_golden NAME` in `tests/`."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from midwatch.streams.records import Command, Spec, codec
from unit.upgrade import written
from unit.upgrade.filled import filled

GOLDEN = Path(__file__).with_name("golden")


def main(name: str) -> None:
    folder = GOLDEN / name
    folder.mkdir(parents=True)
    os.environ["LOGNAME"] = "ada"
    made = [codec.encode(make()) for make in written.kinds().values()]
    (folder / "records.jsonl").write_bytes(b"".join(record + b"\n" for record in made))
    (folder / "bundle.json").write_bytes(codec.encode(written.rules()[1]) + b"\n")
    (folder / "bundle.hash").write_text(written.rules()[0] + "\n")
    with tempfile.TemporaryDirectory() as place:
        one, other, third = (Path(place, each) for each in "abc")
        message = written.chunk()
        _write(folder / "chunk.json", [message.value.decode(), [[n, v.decode()] for n, v in message.headers]])
        records: dict[str, Command | Spec] = {"command": filled(Command), "spec": filled(Spec)}
        _write(
            folder / "signed.json",
            {
                kind: {"canonical": codec.canonical(r).decode(), "signature": written.signed(one, r)}
                for kind, r in records.items()
            },
        )
        (folder / "claim.json").write_bytes(written.claim() + b"\n")
        _write(folder / "state_directory.json", written.state_directory(other))
        _write(folder / "names.json", written.names(third))


def _write(file: Path, what: Any) -> None:
    file.write_text(json.dumps(what, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
