"""An old path, kept: a running `midwatch ship -` of an earlier midwatch starts its process by it."""

from __future__ import annotations

import json
import sys

from midwatch.shippers.pipe.child import main

if __name__ == "__main__":
    sys.exit(main(json.load(sys.stdin)))
