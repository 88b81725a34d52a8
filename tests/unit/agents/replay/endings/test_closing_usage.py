"""A program that cannot read its command line prints how it is called, and nothing else."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.endings.closing_usage import NAMES
from unit.agents.conftest import Watch

BEGUN = "Using the toy backend.\n"
USAGE = "Usage:\n  paint.py <toy> [--wheels=<wheels>] [--debug]\n  paint.py (-h | --help) [options]\n"
STEPS = "".join(f"step {n} loss {3 - n / 50:.3f}\n" for n in range(1, 31))


@pytest.mark.parametrize(
    ("log", "root"),
    [
        (BEGUN + USAGE, "Usage:"),
        (BEGUN + "Usage: ./run.sh <toy> <cards>\n", "Usage: ./run.sh <toy> <cards>"),
        (BEGUN + "usage: paint [OPTIONS] TOY\n", "usage: paint [OPTIONS] TOY"),
    ],
)
def test_a_person_is_told_that_the_command_line_could_not_be_read(watch: Watch, log: str, root: str) -> None:
    done = watch(log)
    assert (done.verdict.state, done.verdict.error_type, done.decision.action) == ("failed", "config", "hold")
    assert done.verdict.root_line == root
    assert "how its program is called" in done.decision.reason


@pytest.mark.parametrize(
    "log",
    [
        pytest.param(BEGUN + USAGE + "the toy is painted\n", id="it went on"),
        pytest.param(STEPS + USAGE, id="it had trained"),
        pytest.param(BEGUN + "Usage:\n  python paint.py --toy <toy>\n", id="what it advises to do next"),
        pytest.param(BEGUN + "Usage: torchrun paint.py --toy <toy>\n", id="the same in a line"),
        pytest.param(BEGUN + "Usage:\n  7 GiB of 40 GiB\n", id="of memory"),
        pytest.param(BEGUN + "Usage:\n", id="a heading alone"),
    ],
)
def test_other_usages_are_no_end(watch: Watch, log: str) -> None:
    assert watch(log).verdict.state != "failed"


HELP = (
    "Usage:\n\npaint [options] [toy ...]\n\n-j n   Paint n toys at once\n-k     Keep order\n--dry  No paint\n"
)
CREDITS = "Whoever paints toys with it may thank the author.\n"


@pytest.mark.parametrize(
    "refusal",
    ["paint: Error: -j needs a number", "/opt/toys/paint: invalid option -- 'z'"],
)
@pytest.mark.parametrize("behind", ["", f"\n{CREDITS}", CREDITS * 12])
def test_a_tool_that_refuses_its_options_above_its_help(watch: Watch, refusal: str, behind: str) -> None:
    done = watch(f"{BEGUN}{refusal}\n{HELP}{behind}")
    assert (done.verdict.error_type, done.decision.action) == ("config", "hold")
    assert done.verdict.root_line == refusal


@pytest.mark.parametrize(
    "log",
    [
        pytest.param(f"{BEGUN}{HELP}{CREDITS}", id="help that was asked for"),
        pytest.param(
            f"{BEGUN}paint: invalid option -- 'z'\n{HELP}{'a toy dries' * 3}\n" + CREDITS * 30, id="more"
        ),
        pytest.param(f"{STEPS}paint: invalid option -- 'z'\n{HELP}", id="it had trained"),
    ],
)
def test_other_helps_are_no_end(watch: Watch, log: str) -> None:
    assert watch(log).verdict.state != "failed"


@pytest.mark.parametrize(
    "text",
    [
        "Unknown wheel: ['oval']\nAvailable: ['round', 'square']\n",
        "the toys start\nUnbekannter Lack: rosa\nVerf\u00fcgbare Lacke: rot, blau\n",
        "\uc54c \uc218 \uc5c6\ub294 \ubc14\ud034: ['oval']\n\uc0ac\uc6a9 \uac00\ub2a5: ['round', 'square']\n",
        "\u672a\u77e5\u7684\u8f6e\u5b50\uff1aoval\n\u53ef\u7528\u7684\u8f6e\u5b50\uff1around, square\n",
        "\u4e0d\u660e\u306a\u8eca\u8f2a: oval\n\u5229\u7528\u53ef\u80fd: round, square\n",
    ],
)
def test_a_name_that_is_not_known_and_those_that_are(watch: Watch, text: str) -> None:
    done = watch(text)
    assert (done.verdict.error_type, done.decision.action) == ("config", "hold")
    assert done.decision.reason == NAMES


@pytest.mark.parametrize(
    "text",
    [
        "Unknown wheel: ['oval']\nAvailable: ['round', 'square']\nthe toy takes a round one\n",
        "Available: ['round', 'square']\n",
        "Unknown wheel: ['oval']\nAvailable memory: 7 GB\n",
    ],
)
def test_such_lines_elsewhere_end_nothing(watch: Watch, text: str) -> None:
    assert watch(text).verdict.state != "failed"
