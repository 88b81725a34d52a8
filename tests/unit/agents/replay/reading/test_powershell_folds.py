"""What PowerShell folded into lines as wide as its window is read as the program wrote it."""

from __future__ import annotations

from midwatch.agents.replay.reading.powershell_folds import unfolded
from unit.agents.conftest import Watch

RECORD = (
    "python : 2026-03-02 11:52:40,118 [INFO] packs the toys\n"
    "At line:1 char:1\n"
    "+ python pack.py\n"
    "+ ~~~~~~~~~~~~~~\n"
    "    + CategoryInfo          : NotSpecified: (2026-03-02 11:5...s the \n"
    "   toys:String) [], RemoteException\n"
    "    + FullyQualifiedErrorId : NativeCommandError\n"
    " \n"
)
FOLDED = (
    "2026-03-02 11:52:41,118 [INFO] Loading toys from: \n"
    "toys/wheels.bin\n"
    "2026-03-02 11:52:42,118 [ERROR] Cannot find wheels at \n"
    "toys/wheels.bin\n"
)


def test_an_error_that_was_folded_is_the_last_line(watch: Watch) -> None:
    done = watch(RECORD + FOLDED)
    assert (done.verdict.state, done.decision.action) == ("failed", "hold")
    assert done.verdict.root_line.startswith("2026-03-02 11:52:42,118 [ERROR] Cannot find wheels at")
    assert watch(FOLDED).verdict.state != "failed"
    with_returns = (RECORD + FOLDED).replace("\n", "\r\n")
    assert watch(with_returns).verdict.state == "failed"
    assert watch(with_returns.removesuffix("\n")).verdict.state == "failed"


def test_a_line_goes_on_where_a_blank_ends_it() -> None:
    lines = [
        (7, b"+ NativeCommandError"),
        (8, b"two "),
        (9, b"wheels "),
        (10, b"here"),
        (11, b""),
        (12, b"x"),
    ]
    assert unfolded(lines) == [(7, lines[0][1]), (8, b"two wheels here"), (11, b""), (12, b"x")]
    assert unfolded(lines[1:]) == lines[1:]
