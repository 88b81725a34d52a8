"""Rotated files of one log: their names tell the order where nothing else does."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.reading.rotated_files import in_rotation
from midwatch.agents.replay.replayed import Replayed
from midwatch.agents.replay.starts.appended_starts import replay_last
from unit.agents.replay.starts.test_appended_starts import OUT_OF_MEMORY, RAISED, steps

At = Callable[[Mapping[str, str]], Replayed]


@pytest.fixture
def copied(watch_files: Callable[..., Replayed]) -> At:
    """Of files by their names, which were copied in the order of these."""

    def replayed(texts: Mapping[str, str]) -> Replayed:
        names = sorted(texts)
        files = [LogFile(name, texts[name].encode(), 7e8 + at / 1000) for at, name in enumerate(names)]
        return replay_last(files, watch_files)

    return replayed


def test_what_an_older_file_ends_in_is_over_where_the_younger_one_goes_on(copied: At) -> None:
    done = copied({"toy.log.1": steps(1, 80) + RAISED, "toy.log": "resumes\n" + steps(51, 160)})
    assert done.verdict.state == "healthy"
    done = copied({"toy.log.1": steps(1, 80), "toy.log": steps(81, 160) + OUT_OF_MEMORY})
    assert done.verdict.error_type == "oom"


def test_the_numbers_count_not_the_order_of_the_names(copied: At) -> None:
    older = {f"toy.log.{age}": steps(300 - 20 * age, 319 - 20 * age) for age in range(1, 13)}
    older["toy.log.11"] += RAISED
    assert copied({**older, "toy.log": steps(301, 320)}).verdict.state == "healthy"
    older["toy.log.11"] = older["toy.log.11"].removesuffix(RAISED)
    assert copied({**older, "toy.log": steps(301, 320) + RAISED}).verdict.error_type == "exception"


@pytest.mark.parametrize(
    "names",
    [
        [f"toy.log.{rank}" for rank in range(5)],
        ["toy.log", *(f"toy.log.{rank}" for rank in range(5))],
        ["toy.log", *(f"toy.log.{rank}" for rank in range(1, 8))],
        ["toy.log", "toy.log.2", "toy.log.3"],
    ],
)
def test_files_of_ranks_have_no_order(copied: At, names: list[str]) -> None:
    texts = {name: f"toy {name} winds up\n" + steps(1, 80) for name in names}
    texts[names[1]] = steps(1, 60) + RAISED
    assert copied(texts).verdict.error_type == "exception"


def test_files_that_begin_alike_have_no_order(copied: At) -> None:
    begun = "the toys wind up\n"
    done = copied({"toy.log": begun + steps(1, 80), "toy.log.1": begun + steps(1, 60) + RAISED})
    assert done.verdict.error_type == "exception"


def test_last_writes_in_the_order_of_the_names_stay() -> None:
    names = ["toy.log", "toy.log.1", "toy.log.2.gz", "other.log.1"]
    files = [LogFile(name, name.encode(), 0.0) for name in names]
    assert in_rotation(files, [9.0, 7.0, 5.0, 9.5]) == [9.0, 7.0, 5.0, 9.5]
    parted = in_rotation(files, [7.0, 7.0, 8.0, 9.5])
    assert parted == pytest.approx([7.0, 7.0, 7.0, 9.5], abs=0.01)
    assert parted[0] > parted[1] > parted[2]
