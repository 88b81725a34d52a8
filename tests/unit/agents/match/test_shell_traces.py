"""A command that a shell runs for its output ends nothing, however it ends."""

from __future__ import annotations

import pytest

from midwatch.agents.match.shell_traces import is_captured

LAST = b"srun: error: n4: task 0: Exited with exit code 1\n"


@pytest.mark.parametrize(
    ("above", "asked"),
    [
        (b"++ srun --ntasks=1 facts.sh\n", True),
        (b"+ srun --ntasks=1 warm.sh\n++ LANG=C srun --ntasks=1 facts.sh\nusage: facts.sh\n", True),
        (b"0: ++ srun facts.sh\n", True),
        (b"++ srun facts.sh\n+ srun --ntasks=8 train.sh\nstep 1\n", False),
        (b"++ date +%s\n+ srun --ntasks=8 train.sh\n", False),
        (b"++ date +%s\n", False),
        (b"a ++ srun b\n", False),
        (b"", False),
    ],
)
def test_the_nearest_traced_command_decides(above: bytes, asked: bool) -> None:
    assert is_captured(above + LAST, len(above)) is asked


def test_what_was_traced_far_above_is_not_asked() -> None:
    above = b"++ srun facts.sh\n" + b"step\n" * 2000
    assert not is_captured(above + LAST, len(above))
