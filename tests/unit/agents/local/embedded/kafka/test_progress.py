"""A bar for people who watch, one line for a log."""

from __future__ import annotations

import io

from midwatch.agents.local.embedded.kafka.progress import DownloadProgress, shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_gets_one_line() -> None:
    log = io.StringIO()
    with shown("2 jars from mirror.example", 36_300_000, log) as listener:
        for done in range(0, 36_300_000, 1_000_000):
            listener(DownloadProgress("jars", done, 36_300_000))
    assert log.getvalue() == "downloading 2 jars from mirror.example, 36.3 MB\n"


def test_a_terminal_gets_a_bar_that_ends_full() -> None:
    terminal = Terminal()
    with shown("2 jars", 2_000_000, terminal) as listener:
        listener(DownloadProgress("2 jars", 2_000_000, 2_000_000))
    assert "2 jars" in terminal.getvalue()
    assert "2.0/2.0 MB" in terminal.getvalue()
