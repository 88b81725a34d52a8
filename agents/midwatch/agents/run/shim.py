"""An old path, kept: batch scripts and running jobs of an earlier midwatch start their shim by it."""

from __future__ import annotations

import sys

from midwatch.agents.launch.shim import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
