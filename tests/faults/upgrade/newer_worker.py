"""Detect or decide of the next version: it reads one version more, and nothing else differs."""

from __future__ import annotations

import sys

from midwatch.agents.decide import worker as decide
from midwatch.agents.detect import worker as detect
from midwatch.streams.records import codec
from midwatch.streams.services.connection import with_connection
from midwatch.streams.settings.file import load_settings
from midwatch.streams.settings.reader import Assignment

RUN = {"detect": detect.run, "decide": decide.run}

if __name__ == "__main__":
    codec.VERSION = 2
    quick = [Assignment(("worker", "session_timeout"), "2s", "upgrade")]
    RUN[sys.argv[1]](with_connection(load_settings(None, options=quick)))
