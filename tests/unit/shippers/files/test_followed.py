"""Files as people and logrotate treat them: appended, renamed, truncated, removed, replaced."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from house.cases import cases
from unit.shippers.reading import Reader


def append(path: Path, *lines: str) -> None:
    with path.open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "train.log"


def test_a_file_is_read_from_its_beginning_and_then_as_it_grows(log: Path) -> None:
    append(log, "one", "two")
    reader = Reader(log)
    assert reader.look() == ["one", "two"]
    append(log, "three")
    assert reader.look() == ["three"]
    assert [(offset, number) for _, offset, number, _ in reader.seen] == [(0, 1), (4, 2), (8, 3)]


def test_a_file_that_comes_later_is_found(log: Path) -> None:
    reader = Reader(log)
    assert reader.look() == []
    append(log, "one")
    assert reader.look() == ["one"]


def test_from_the_end_only_new_lines_count_with_their_true_numbers(log: Path) -> None:
    append(log, "one", "two")
    reader = Reader(log, start="end")
    assert reader.look() == []
    append(log, "three")
    reader.look()
    assert [(offset, number, text) for _, offset, number, text in reader.seen] == [(8, 3, "three")]


def test_globs_and_directories_are_looked_at_again(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    append(logs / "rank0.log", "zero")
    by_glob, by_directory = Reader(logs / "rank*.log"), Reader(logs)
    assert by_glob.look() == by_directory.look() == ["zero"]
    append(logs / "rank1.log", "one")
    append(logs / "rank1.log.gz", "not text")
    assert by_glob.look() == by_directory.look() == ["one"]


def test_two_names_of_one_file_are_one_file(tmp_path: Path) -> None:
    append(tmp_path / "a.log", "once")
    os.link(tmp_path / "a.log", tmp_path / "b.log")
    assert Reader(tmp_path / "*.log").look() == ["once"]


def test_a_renamed_file_is_read_to_its_end_and_the_new_one_from_its_beginning(log: Path) -> None:
    append(log, "one")
    reader = Reader(log)
    reader.look()
    append(log, "two")
    log.rename(log.with_name("train.log.1"))
    append(log, "three")
    assert reader.look() == ["two", "three"]
    append(log.with_name("train.log.1"), "late words of the old one")
    assert reader.look() == ["late words of the old one"]


def test_what_was_written_and_rotated_between_two_looks_is_found(log: Path) -> None:
    append(log, "one")
    reader = Reader(log)
    reader.look()
    log.rename(log.with_name("train.log.2"))
    append(log, "two")
    log.rename(log.with_name("train.log.1"))
    append(log, "three")
    assert reader.look() == ["two", "three"]
    assert reader.look() == []


def test_a_removed_file_is_read_to_its_end(log: Path) -> None:
    append(log, "one")
    reader = Reader(log)
    reader.look()
    append(log, "two")
    log.unlink()
    assert reader.look() == ["two"]
    reader.later(20).look()
    assert reader.watch.tails == []


def test_a_truncated_file_is_another_generation(log: Path) -> None:
    append(log, "one", "two")
    reader = Reader(log)
    reader.look()
    log.write_text("")
    reader.look()
    append(log, "1")
    assert reader.look() == ["1"]
    generations = [generation for generation, *_ in reader.seen]
    assert len(set(generations)) == 2
    assert generations[-1].endswith(":1")
    assert reader.watch.truncated == 1


def test_a_file_rewritten_to_the_same_length_or_more_is_seen_as_another(log: Path) -> None:
    append(log, "one")
    reader = Reader(log)
    reader.look()
    log.write_text("longer than before\n")
    assert reader.look() + reader.look() == ["longer than before"]


def test_a_copytruncate_loses_nothing_that_the_copy_has(log: Path) -> None:
    append(log, "one")
    reader = Reader(log)
    reader.look()
    append(log, "two")
    shutil.copy(log, log.with_name("train.log.1"))
    log.write_text("")
    append(log, "3")
    assert reader.look() + reader.look() == ["two", "3"]


def test_after_a_restart_only_the_rest_is_read(log: Path) -> None:
    append(log, "one")
    first = Reader(log)
    first.look()
    append(log, "two")
    second = Reader(log, remembered=first.stop())
    assert second.look() == ["two"]
    assert second.seen[0][:3] == (first.seen[0][0], 4, 2)


def test_after_a_restart_all_that_was_rotated_meanwhile_is_read(log: Path) -> None:
    append(log.with_name("train.log.9"), "from last week")
    os.utime(log.with_name("train.log.9"), (1, 1))
    append(log, "one")
    first = Reader(log)
    first.look()
    remembered = first.stop()
    append(log, "two")
    log.rename(log.with_name("train.log.2"))
    append(log, "three")
    log.rename(log.with_name("train.log.1"))
    append(log, "four")
    assert sorted(Reader(log, remembered=remembered).look()) == ["four", "three", "two"]


def test_a_drained_file_is_not_read_again_after_a_restart(log: Path) -> None:
    append(log, "one")
    first = Reader(log.with_name("train.log*"))
    first.look()
    log.rename(log.with_name("train.log.1"))
    append(log, "two")
    first.look()
    first.later(20).look()
    assert Reader(log.with_name("train.log*"), remembered=first.stop()).look() == []


def test_an_inode_that_comes_again_is_another_file(log: Path) -> None:
    append(log, "one of the first file", "two")
    first = Reader(log)
    first.look()
    with log.open("r+") as file:  # same inode, as a file system may give it to the next file
        file.truncate(0)
        file.write("a different beginning, and longer than the first one\n")
    second = Reader(log, remembered=first.stop())
    assert second.look() == ["a different beginning, and longer than the first one"]
    assert second.seen[0][0] != first.seen[0][0]


def test_what_is_not_acknowledged_is_read_again_and_is_the_same(log: Path) -> None:
    append(log, "one")
    reader = Reader(log)
    reader.look()
    append(log, "two", "three")
    assert reader.look(acknowledge=False) == ["two", "three"]
    reader.watch.rewind()
    assert reader.look() == ["two", "three"]
    assert reader.seen[1:3] == reader.seen[3:5]


def test_a_file_that_may_not_be_read_makes_us_blind(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(log, "one")
    reader = Reader(log)

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    reader.look()
    assert reader.watch.blind
    assert any("Permission denied" in said for said in reader.said)
    monkeypatch.undo()
    assert reader.look() == ["one"]
    assert not reader.watch.blind


STEPS = ["write", "write", "write", "look", "unanswered", "failed", "rotate", "restarted", "killed", "remove"]


@settings(max_examples=cases(200))
@given(st.lists(st.sampled_from(STEPS), max_size=30))
def test_no_history_of_a_file_loses_or_changes_a_line(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    log = tmp_path_factory.mktemp("history") / "train.log"
    clock = 1_700_000_000_000_000_000
    append(log, "line 0")
    os.utime(log, ns=(clock, clock))
    reader, written, rotations = Reader(log), 1, 0
    reader.look()
    seen: list[tuple[str, int, int, str]] = []
    for step in [*steps, "look", "look"]:
        match step:
            case "write":
                append(log, f"line {written}")
                written += 1
                clock += 1_000_000
                os.utime(log, ns=(clock, clock))
            case "look" | "unanswered":
                reader.look(acknowledge=step == "look")
            case "failed" | "killed":  # what was read did not arrive
                arrived = len(reader.seen)
                reader.look(acknowledge=False)
                del reader.seen[arrived:]
                if step == "failed":
                    reader.watch.rewind()
                else:
                    seen += reader.seen
                    reader = Reader(log, remembered=reader.stop())
            case "restarted":
                seen += reader.seen
                reader = Reader(log, remembered=reader.stop())
            case "rotate" if log.exists():
                rotations += 1
                log.rename(log.with_name(f"train.log.{rotations}"))
            case "remove" if log.exists():
                reader.look()
                log.unlink()
    seen += reader.seen
    assert {text for *_, text in seen} == {f"line {i}" for i in range(written)}
    # A line that was sent twice is the same line at the same place, so a consumer can tell.
    assert len(set(seen)) == written
