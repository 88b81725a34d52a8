"""A foreign package, installed as users do it: what it adds, and that only its enabled parts count."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foreign_package import forget, install, lay_out, variables
from midwatch.agents.rulesets.content import bundle, bundle_hash, content
from midwatch.agents.rulesets.extensions import extensions_of
from midwatch.agents.schedulers.calls import SystemCaller
from midwatch.agents.schedulers.foreign import foreign_clusters
from midwatch.rules.detectors import DETECTORS
from midwatch.streams.errors import ConfigurationError, NewerRecord
from midwatch.streams.records import ForeignParts
from midwatch.streams.settings.schema import ExtensionSettings

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has 1.00 GiB free"
BOTH = ("extensions.detectors=grad_norm", "extensions.policies=patient")
LAST_LINE = 'return streak, (Opened(told, {"step": str(seen.step), "grad_norm": seen.grad_norm}),)'
HASHES = """
import sys
from midwatch.agents.rulesets.draft import read_draft
from midwatch.streams.settings.file import load_settings
from midwatch.streams.settings.reader import Assignment
for word in sys.argv[1:]:
    name, _, value = word.partition("=")
    options = [Assignment(tuple(name.split(".")), value, "test")]
    print(read_draft(load_settings(None, environment={}, options=options)).hash)
"""


def _step(number: int, norm: float) -> str:
    fields = (
        f" iteration {number:8d}/  100000",
        f"consumed samples: {number * 8:12d}",
        "elapsed time per iteration (ms): 100.0",
        "learning rate: 1.0E-04",
        "global batch size:     8",
        "lm loss: 2.000000E+00",
        "loss scale: 1.0",
        f"grad norm: {norm:.3f}",
        "number of skipped iterations:   0",
        "number of nan iterations:   0 |",
    )
    return " | ".join(fields)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of the page."""
    return install(tmp_path_factory.mktemp("parts"))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A run whose gradient's norm stays high, and that runs out of memory."""
    norms = [1.0] * 5 + [50.0] * 4
    lines = [_step(number, norm) for number, norm in enumerate(norms, 1)]
    file = tmp_path / "train.log"
    file.write_text("\n".join([*lines, OOM]) + "\n")
    return file


def _python(installed: Path | None, where: Path, *words: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MIDWATCH_")}
    return subprocess.run(
        [sys.executable, "-P", *words],
        cwd=where,
        env=kept | (variables(installed) if installed else {}),
        capture_output=True,
        text=True,
        check=False,
    )


def _replay(log: Path, installed: Path | None, *options: str, policy: str = "") -> dict[str, Any]:
    words = [f"--set={option}" for option in options] + ([f"--policy={policy}"] if policy else [])
    done = _python(installed, log.parent, "-m", "midwatch", "replay", log.name, "--json", *words)
    assert done.returncode == 1, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_what_the_settings_enable_judges_a_replayed_log(log: Path, installed: Path) -> None:
    said = _replay(log, installed, *BOTH, policy="patient")
    (finding,) = said["findings"]
    assert (finding["kind"], finding["detail"]) == (
        "grad_norm",
        "the gradient's norm is 50.000 at step 8",
    )
    assert said["verdict"]["error_type"] == "oom"
    assert said["decision"]["action"] == "restart"
    assert said["decision"]["policy"] == "patient"
    assert "may have been another's" in said["decision"]["reason"]


def test_a_package_that_is_merely_installed_changes_nothing(log: Path, installed: Path) -> None:
    without = _replay(log, None)
    assert _replay(log, installed) == without
    assert (without["findings"], without["decision"]["action"]) == ([], "stop")


def _hashes(installed: Path, where: Path, *options: str) -> list[str]:
    """Of the bundles of these settings, each by itself."""
    done = _python(installed, where, "-c", HASHES, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_name_and_version_of_detectors_and_policies_are_part_of_the_bundles_hash(
    tmp_path: Path, installed: Path
) -> None:
    newer = install(tmp_path / "newer", {'version: str = "1"': 'version: str = "2"'})
    plain, with_scheduler, *older = _hashes(
        installed, tmp_path, "extensions.detectors=", "extensions.schedulers=shelf", *BOTH
    )
    assert with_scheduler == plain
    hashes = {plain, *older, *_hashes(newer, tmp_path, *BOTH)}
    assert len(hashes) == 5


def test_a_name_that_nobody_offers_ends_the_command_with_exit_code_3(log: Path, installed: Path) -> None:
    option = "--set=extensions.detectors=of_nobody"
    done = _python(installed, log.parent, "-m", "midwatch", "replay", log.name, option)
    assert done.returncode == 3, done.stderr
    assert "extensions.detectors: no installed package offers 'of_nobody'" in done.stderr


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
