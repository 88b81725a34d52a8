"""Files that share what is slow to start run in one process, and the longest begin first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

import kept_running
from house import turns
from house.tree import ROOT


def test_every_path_that_is_named_is_there() -> None:
    paths = [path for begins in turns.TOGETHER.values() for path in begins]
    paths += [name for name in turns.FIRST if name not in turns.TOGETHER]
    files = [file.relative_to(ROOT).as_posix() for file in (ROOT / "tests").rglob("test_*.py")]
    assert [path for path in paths if not any(file.startswith(path) for file in files)] == []


def test_files_on_one_ray_head_are_one_turn_and_any_other_file_is_its_own() -> None:
    on_ray = {"tests/faults/ray/test_a.py::test_one", "tests/integration/ray/test_b.py::test_two[x::y]"}
    assert {turns.turn_of(node) for node in on_ray} == {"Ray"}
    assert turns.turn_of("tests/unit/test_a.py::test_one[a::b]") == "tests/unit/test_a.py"


def test_the_longest_begin_and_within_a_turn_the_order_stays() -> None:
    first, ray = turns.FIRST[0], "tests/integration/ray/test_b.py"
    names = [
        "tests/a.py::test_1",
        f"{ray}::test_2",
        "tests/a.py::test_3",
        f"{ray}::test_1",
        f"{first}::test_1",
    ]
    items: list[Any] = [SimpleNamespace(nodeid=name) for name in names]
    assert [item.nodeid for item in turns.in_order(items)] == [names[i] for i in (4, 1, 3, 0, 2)]


def test_what_each_turn_took_is_summed_with_what_it_started_and_ended() -> None:
    names = ("tests/integration/ray/test_a.py::b", "tests/faults/ray/test_c.py::d", "tests/unit/test_e.py::f")
    reports = [SimpleNamespace(nodeid=name, duration=float(n)) for n, name in enumerate(names * 2, 1)]
    slurm = SimpleNamespace(nodeid="tests/integration/chain/test_slurm_array.py::g", duration=90.0)
    assert turns.seconds([*reports, slurm, SimpleNamespace()]) == {"chains on SLURM": 90.0, "Ray": 12.0}
    assert list(turns.seconds([*reports, slurm])) == ["chains on SLURM", "Ray"]


class _Config:
    """What is asked of pytest's own."""

    def __init__(self) -> None:
        self.stash = pytest.Stash()
        self.cleanups: list[Callable[[], object]] = []

    def add_cleanup(self, cleanup: Callable[[], object]) -> None:
        self.cleanups.append(cleanup)


def test_what_is_kept_starts_once_and_ends_with_its_turn() -> None:
    config, told = _Config(), list[str]()

    @contextmanager
    def noted(name: str) -> Iterator[str]:
        told.append(f"{name} begins")
        yield name
        told.append(f"{name} ends")

    def asked(name: str) -> str:
        request: Any = SimpleNamespace(config=config, fixturename=name)
        return kept_running.kept(request, lambda: noted(name))

    assert [asked("one"), asked("two"), asked("one")] == ["one", "two", "one"]
    kept_running.end_all(cast(pytest.Config, config))
    assert told == ["one begins", "two begins", "two ends", "one ends"]
    assert asked("one") == "one"
    for cleanup in config.cleanups:
        cleanup()
    assert told[4:] == ["one begins", "one ends"]
