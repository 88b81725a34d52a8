"""Detect of the next version: it reads one version more, and is otherwise the same."""

from __future__ import annotations

from midwatch.agents import detect
from midwatch.streams import codec
from midwatch.streams.connection import with_connection
from midwatch.streams.settings_file import load_settings
from midwatch.streams.settings_reader import Assignment

if __name__ == "__main__":
    codec.VERSION = 2
    quick = [Assignment(("worker", "session_timeout"), "2s", "upgrade")]
    detect.run(with_connection(load_settings(None, options=quick)))
