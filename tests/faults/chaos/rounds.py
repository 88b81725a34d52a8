"""How often each case is played, and by which seeds: one round for `make test`, many for `make chaos`.

`MIDWATCH_CHAOS_ROUNDS` sets the number, `MIDWATCH_CHAOS_SEED` the seed that all others come from.
"""

from __future__ import annotations

import os
import secrets
import zlib

LEAN = 1
ROUNDS = int(os.environ.get("MIDWATCH_CHAOS_ROUNDS") or LEAN)
FULL = ROUNDS > LEAN
"""Whether this is the long run: each fault then gets a run of its own, and nothing is shortened."""
AT_LEAST_TWO = max(2, ROUNDS)
"""Of a case that takes seconds, and whose second round begins with what the first one left behind."""
AT_A_TIME = 2
"""So many rounds are played side by side, or by one training, where a case allows it."""
_BASE = int(os.environ.get("MIDWATCH_CHAOS_SEED") or secrets.randbits(32))


def seed_of(case: str) -> int:
    """The seed of one case; told on standard output, where pytest shows it when the case fails."""
    seed = zlib.crc32(case.encode(), _BASE & 0xFFFFFFFF)
    print(f"{case}: seed {seed}, of MIDWATCH_CHAOS_SEED={_BASE}")
    return seed
