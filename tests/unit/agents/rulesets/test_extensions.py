"""A foreign package: what of it can be used, and which mistakes of it are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from foreign_package import forget, lay_out
from midwatch.agents.rulesets.content import bundle, bundle_hash, content
from midwatch.agents.rulesets.extensions import extensions_of
from midwatch.agents.schedulers.calls import SystemCaller
from midwatch.agents.schedulers.foreign import foreign_clusters
from midwatch.rules.detectors import DETECTORS
from midwatch.streams.errors import ConfigurationError, NewerRecord
from midwatch.streams.records import ForeignParts
from midwatch.streams.settings.schema import ExtensionSettings

LAST_LINE = 'return streak, (Opened(told, {"step": str(seen.step), "grad_norm": seen.grad_norm}),)'


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[dict[str, str]], None]]:
    """Lays the package out for this process, with changes; before and behind the test it is forgotten."""

    def lay(changes: dict[str, str]) -> None:
        monkeypatch.syspath_prepend(lay_out(tmp_path / f"parts{len(list(tmp_path.iterdir()))}", changes))

    forget()
    yield lay
    forget()


@pytest.mark.parametrize(
    ("changes", "option", "word"),
    [
        ({"def observe": "def watch"}, {"detectors": ("grad_norm",)}, "'grad_norm' lacks observe"),
        ({"max_restarts:": "restarts:"}, {"policies": ("patient",)}, "'patient' lacks max_restarts"),
        ({"grad_norm =": "loss_spike ="}, {"detectors": ("loss_spike",)}, "midwatch itself uses"),
        ({"grad_norm =": "blind ="}, {"detectors": ("blind",)}, "midwatch itself uses"),
        ({"patient =": "verdict ="}, {"policies": ("verdict",)}, "midwatch itself uses"),
        ({'name: str = "grad_norm"': 'name: str = "norm"'}, {"detectors": ("grad_norm",)}, "calls itself"),
        ({'version: str = "1"': 'version: str = ""'}, {"detectors": ("grad_norm",)}, "names no version"),
        ({"import Incident": "import Accident"}, {"policies": ("patient",)}, "imported: ImportError"),
    ],
    ids=["shape", "policy-shape", "shipped", "finding", "policy", "name", "version", "import"],
)
def test_what_cannot_be_used_is_a_mistake_of_the_settings(
    parts: Callable[[dict[str, str]], None],
    changes: dict[str, str],
    option: dict[str, tuple[str, ...]],
    word: str,
) -> None:
    parts(changes)
    with pytest.raises(ConfigurationError, match=word) as error:
        extensions_of(ExtensionSettings(**option))
    assert error.value.where == f"extensions.{next(iter(option))}"


def test_two_packages_that_offer_one_name_are_told_of(parts: Callable[[dict[str, str]], None]) -> None:
    parts({})
    parts({"night-parts": "day-parts", "night_parts": "day_parts"})
    with pytest.raises(ConfigurationError, match="offer 'grad_norm': day-parts, night-parts"):
        extensions_of(ExtensionSettings(detectors=("grad_norm",)))


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"def sweep": "def look"}, "'shelf' lacks sweep"),
        ({'kind = "shelf"': 'kind = "bench"'}, "of kind 'bench'"),
        ({"shelf =": "slurm ="}, "midwatch itself uses"),
    ],
    ids=["shape", "kind", "shipped"],
)
def test_a_scheduler_that_cannot_be_used_is_a_mistake_of_the_settings(
    parts: Callable[[dict[str, str]], None], changes: dict[str, str], word: str, tmp_path: Path
) -> None:
    parts(changes)
    name = "slurm" if "shelf =" in changes else "shelf"
    with pytest.raises(ConfigurationError, match=word):
        foreign_clusters(ExtensionSettings(schedulers=(name,)), tmp_path, SystemCaller())


def test_a_bundle_that_names_a_part_which_is_not_here_is_waited_for(
    parts: Callable[[dict[str, str]], None],
) -> None:
    parts({})
    enabled = extensions_of(ExtensionSettings(detectors=("grad_norm",), policies=("patient",)))
    record = bundle((), {}, (), {}, any_line=False, foreign=enabled.named())
    read = content(bundle_hash(record), record, enabled)
    assert [*read.detectors] == [*DETECTORS, "grad_norm"]
    assert "patient" in read.policies
    with pytest.raises(NewerRecord, match="of version 1, and here it is not enabled"):
        content(bundle_hash(record), record)
    other = replace(record, foreign=ForeignParts({"grad_norm": "2"}))
    with pytest.raises(NewerRecord, match="of version 2, and here version 1 is enabled"):
        content(bundle_hash(other), other, enabled)


def test_an_earlier_version_that_the_package_still_offers_is_asked(
    parts: Callable[[dict[str, str]], None],
) -> None:
    both = 'PARTS = (GradNorm(version="2"), GradNorm())\n'
    parts({"grad_norm:GradNorm": "grad_norm:PARTS", LAST_LINE: f"{LAST_LINE}\n\n\n{both}"})
    enabled = extensions_of(ExtensionSettings(detectors=("grad_norm",)))
    assert enabled.named() == ForeignParts({"grad_norm": "2"})
    record = bundle((), {}, (), {}, any_line=False, foreign=ForeignParts({"grad_norm": "1"}))
    assert content(bundle_hash(record), record, enabled).detectors["grad_norm"].version == "1"
