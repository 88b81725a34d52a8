"""`midwatch`, whose shipper replaces a producer after 15 s without an acknowledgement instead of 60 s."""

from __future__ import annotations

from midwatch.agents.cli import main
from midwatch.shippers import sidecar

SILENT_S = 15.0

if __name__ == "__main__":
    sidecar._SILENT = SILENT_S
    main()
