"""Writes the present states beside older ones: `python -m unit.agents.write_state_blobs NAME [MOMENT…]` in
`tests/`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from unit.agents.state_stage import moments

BLOBS = Path(__file__).with_name("state_blobs")


def main(name: str, *wanted: str) -> None:
    for moment, blobs in moments().items():
        file = BLOBS / f"{name}_{moment}.json"
        if wanted and moment not in wanted:
            continue
        with file.open("x") as out:
            json.dump({kind: json.loads(blob) for kind, blob in blobs.items()}, out, indent=1)
            out.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
