"""The fixed words that records use."""

from __future__ import annotations

from typing import Literal

Role = Literal["cause", "consequence", "context", "progress", "success"]
Mode = Literal["crash", "stall", "timeout", "ended", "success"]
Action = Literal["restart", "cancel", "stop", "hold", "none"]
Unit = Literal["step", "epoch"]
"""What a checkpoint counts in."""

Phase = Literal["startup", "compile", "training", "evaluation", "checkpoint"]
Shows = Literal["step", "training", "climb", "life"]
