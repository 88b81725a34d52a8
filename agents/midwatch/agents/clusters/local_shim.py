"""An old path, kept: an executor of an earlier midwatch starts local jobs by it."""

from __future__ import annotations

import sys

from midwatch.agents.schedulers.local.shim import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
