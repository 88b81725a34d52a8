"""Detectors: what is seen in numbers and in silence rather than in one line. One file each, all pure.

A new one is one file here and one line in `DETECTORS`; the fold looks them up by what is in force.
"""

from __future__ import annotations

from midwatch.rules.detectors.base import Detectors
from midwatch.rules.detectors.loss_spike import LossSpikeDetector
from midwatch.rules.detectors.silence import SilenceDetector

DETECTORS: Detectors = {each.name: each for each in (LossSpikeDetector(), SilenceDetector())}
"""Those that ship with midwatch; they watch every job."""
