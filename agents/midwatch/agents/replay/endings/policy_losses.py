"""Policy losses: an optimiser of rewards shifts its loss to lie near 0, so its height shows nothing. Pure.

The advantages of a group have a mean of 0 (DeepSeekMath, arXiv 2402.03300). So the loss of TRL's GRPO is its
KL term and rounding, and rises a hundredfold while the policy learns.
"""

from __future__ import annotations

import re

from midwatch.agents.replay.reading.log_files import LogFile, line_of

_RECORD = re.compile(r"['\"](?:clip_ratio|completions|frac_reward_zero_std)\b")
"""What TRL's trainers of policies print beside the loss."""
_LARGE = 1.0
"""From here on it has left the size of an advantage."""


def is_of_a_policy(file: LogFile, number: int, loss: float | None) -> bool:
    """Whether line `number`, a step's, is such a trainer's, and its loss is small. Raises OSError."""
    return loss is not None and abs(loss) < _LARGE and _RECORD.search(line_of(file, number)) is not None
