"""Kept: an executor of an earlier midwatch starts local jobs by this path until it is replaced."""

from __future__ import annotations

import sys

from midwatch.agents.schedulers.local.shim import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
