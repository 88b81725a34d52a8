"""A log has one verdict, whichever way its lines end, as Windows, a terminal or an editor leaves them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from replay.test_provoked import ROWS, judge

if TYPE_CHECKING:
    from collections.abc import Callable

ONE_OF = 48
"""Each verdict takes some tenths of a second, so one of so many logs is judged in each form."""


def _with_returns(log: str) -> str:
    return log.replace("\r\n", "\n").replace("\n", "\r\n") + "\r\n"


def _with_blanks(log: str) -> str:
    return re.sub(r"(?<=[^\r\n])(?=\r?\n|\Z)", "  ", log)


@pytest.mark.parametrize("name", list(ROWS)[::ONE_OF])
@pytest.mark.parametrize(
    "other",
    [
        pytest.param(_with_returns, id="returns"),
        pytest.param(lambda log: log + "\n\n\n", id="empty lines below"),
        pytest.param(_with_blanks, id="blanks"),
    ],
)
def test_the_verdict_does_not_depend_on_how_lines_end(name: str, other: Callable[[str], str]) -> None:
    log = ROWS[name].log
    said, also = judge()(log), judge()(other(log))
    assert (also.error_type, also.action, also.root_line.strip()) == (
        said.error_type,
        said.action,
        said.root_line.strip(),
    )
