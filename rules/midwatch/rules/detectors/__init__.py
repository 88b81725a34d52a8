"""Detectors find what no single line shows: in numbers and in silence. Each is one pure module.

A new one is one module here and one entry in `DETECTORS`, where the fold looks them up.
"""

from __future__ import annotations

from midwatch.rules.detectors.base import Detectors
from midwatch.rules.detectors.loss_spike import LossSpikeDetector
from midwatch.rules.detectors.silence import SilenceDetector

DETECTORS: Detectors = {each.name: each for each in (LossSpikeDetector(), SilenceDetector())}
"""Those that ship with midwatch. They watch every job."""
