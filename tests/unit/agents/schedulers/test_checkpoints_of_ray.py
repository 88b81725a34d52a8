"""Below Ray Train's storage path the newest checkpoint counts that all ranks have reported."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from checkpoint_shapes import ray_run, ray_trial, torch_file
from midwatch.agents.schedulers.checkpoints import Discovery, discover
from midwatch.agents.schedulers.resume import newest

TIMES = ("2026-11-23_00-55-19.815468", "2026-11-23_00-55-20.351072", "2026-11-23_00-55-37.613642")
SNAPSHOT = "checkpoint_manager_snapshot.json"


def latest(found: Discovery) -> tuple[str, int, str] | None:
    return (found.latest.path.name, found.latest.step, found.latest.unit) if found.latest else None


def reasons(found: Discovery) -> dict[str, str]:
    return {passed.path.name: passed.reason for passed in found.passed_over}


def a_run(folder: Path, *metrics: dict[str, object]) -> list[Path]:
    return ray_run(folder, dict(zip((f"checkpoint_{time}" for time in TIMES), metrics, strict=False)))


@pytest.mark.capability("S000-11")
def test_the_newest_checkpoint_of_the_snapshot_counts_and_a_later_folder_is_torn(tmp_path: Path) -> None:
    a_run(tmp_path, {"step": 2}, {"step": 4})
    torch_file(tmp_path / f"checkpoint_{TIMES[2]}" / "rank_0.pt")
    found = discover(tmp_path)
    assert latest(found) == (f"checkpoint_{TIMES[1]}", 4, "step")
    assert reasons(found) == {
        f"checkpoint_{TIMES[2]}": f"{SNAPSHOT} does not name it: not all ranks have reported it"
    }


def test_a_reported_checkpoint_with_a_cut_file_is_passed_over(tmp_path: Path) -> None:
    folders = a_run(tmp_path, {"step": 2}, {"step": 4}, {"step": 6})
    os.truncate(torch_file(folders[2] / "model.pt"), 60)
    (folders[1] / "state.json").unlink()
    found = discover(tmp_path)
    assert latest(found) == (folders[0].name, 2, "step")
    assert reasons(found) == {folders[2].name: "model.pt was cut short", folders[1].name: "it is empty"}


def test_before_the_first_report_no_checkpoint_is_complete(tmp_path: Path) -> None:
    (folder,) = a_run(tmp_path, {"step": 2})
    (tmp_path / SNAPSHOT).unlink()
    found = discover(tmp_path)
    assert (found.latest, reasons(found)[folder.name]) == (
        None,
        f"there is no {SNAPSHOT}: not all ranks have reported it",
    )
    (tmp_path / SNAPSHOT).write_text('{"checkpoint_results":[{"checkp')
    assert reasons(discover(tmp_path))[folder.name] == f"{SNAPSHOT} cannot be read"


def test_order_is_that_of_the_reports_whatever_score_sorts_the_snapshot(tmp_path: Path) -> None:
    folders = a_run(tmp_path, {"step": 2}, {"step": 4}, {"step": 6})
    state = json.loads((tmp_path / SNAPSHOT).read_text())
    state["checkpoint_results"].reverse()
    state["checkpoint_report_indices"].reverse()
    (tmp_path / SNAPSHOT).write_text(json.dumps(state))
    assert latest(discover(tmp_path)) == (folders[2].name, 6, "step")


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ({"global_step": 40.0}, (40, "step")),
        ({"epoch": 3, "loss": 1.5}, (3, "epoch")),
        ({"loss": 1.5}, (70, "step")),
        ({"step": "many"}, (70, "step")),
        ({"step": float("nan")}, (70, "step")),
        ({"step": float("inf"), "epoch": 3}, (3, "epoch")),
        ({"step": -1}, (70, "step")),
    ],
)
def test_the_step_is_a_metric_or_stands_in_the_checkpoints_metadata(
    tmp_path: Path, metrics: dict[str, object], expected: tuple[int, str]
) -> None:
    (folder,) = a_run(tmp_path, metrics)
    (folder / ".metadata.json").write_text('{"step": 70}')
    assert latest(discover(tmp_path)) == (folder.name, *expected)


def test_a_checkpoint_that_tells_no_step_is_passed_over_with_what_to_do(tmp_path: Path) -> None:
    (folder,) = a_run(tmp_path, {"loss": 1.5})
    found = discover(tmp_path)
    assert found.latest is None
    assert reasons(found)[folder.name].endswith("report `step` or `epoch` as a metric beside the checkpoint")


@pytest.mark.parametrize("name", ["../step_90", ".", "./step_90", ""])
def test_a_name_of_the_users_own_and_one_that_leads_outside(tmp_path: Path, name: str) -> None:
    run = tmp_path / "run"
    (folder,) = ray_run(run, {"step_40": {"loss": 1.5}})
    state = json.loads((run / SNAPSHOT).read_text())
    state["latest_checkpoint_result"] = {"checkpoint_dir_name": name, "metrics": {"step": 90}}
    (run / SNAPSHOT).write_text(json.dumps(state))
    point, _ = newest(run)
    assert (point.path if point else "", point.step if point else 0) == (str(folder), 40)


@pytest.mark.parametrize("name", [f"checkpoint_{TIMES[1]}", "epochs/step_90"])
def test_a_reported_folder_behind_a_link_is_passed_over_for_the_one_before(tmp_path: Path, name: str) -> None:
    run = tmp_path / "run"
    first, second = ray_run(run, {f"checkpoint_{TIMES[0]}": {"step": 2}, name: {"step": 90}})
    link = run / name.partition("/")[0]
    link.rename(tmp_path / "elsewhere")
    link.symlink_to(tmp_path / "elsewhere")
    found = discover(run)
    assert latest(found) == (first.name, 2, "step")
    assert reasons(found)[second.name] == "it is a link or lies behind one, and Ray makes none"


def test_a_snapshot_that_nests_without_end_cannot_be_read(tmp_path: Path) -> None:
    (folder,) = a_run(tmp_path, {"step": 2})
    (tmp_path / SNAPSHOT).write_text("[" * 100_000)
    assert reasons(discover(tmp_path))[folder.name] == f"{SNAPSHOT} cannot be read"


def test_a_folder_that_nobody_may_enter_hides_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as `lost+found` of a file system; root may enter it, so the answer is made up."""
    a_run(tmp_path / "run", {"step": 2})
    (tmp_path / "lost+found").mkdir()
    real = Path.stat

    def stat(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if path.parent.name == "lost+found":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(path, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(Path, "stat", stat)
    assert latest(discover(tmp_path)) == (f"checkpoint_{TIMES[0]}", 2, "step")


def test_of_several_runs_below_a_storage_path_the_later_written_counts(tmp_path: Path) -> None:
    (first,) = a_run(tmp_path / "run-1", {"step": 50})
    (second,) = a_run(tmp_path / "run-2", {"step": 45})
    os.utime(first, (1_000, 1_000))
    found = discover(tmp_path)
    assert found.latest is not None
    assert (found.latest.path, found.latest.step) == (second, 45)


@pytest.mark.capability("S000-11")
def test_the_numbered_folders_of_the_first_ray_train(tmp_path: Path) -> None:
    """A rank can be one checkpoint ahead, so the last two need the driver's word."""
    trial = tmp_path / "Trainer_f99f5_00000_0_2026-11-23_00-51-10"
    ray_trial(trial, steps=(2, 4, 6, 8), noted=2)
    found = discover(tmp_path)
    assert latest(found) == ("checkpoint_000001", 4, "step")
    why = "result.json does not name it, and no later folder proves it: a rank may lack its part"
    assert reasons(found) == {"checkpoint_000002": why, "checkpoint_000003": why}
    (trial / "result.json").unlink()
    for number, step in enumerate((2, 4, 6, 8)):
        (trial / f"checkpoint_{number:06d}" / ".metadata.json").write_text(json.dumps({"step": step}))
    assert latest(discover(tmp_path)) == ("checkpoint_000001", 4, "step")


def test_a_folder_that_ray_did_not_mark_is_not_searched(tmp_path: Path) -> None:
    (folder,) = a_run(tmp_path / "data", {"step": 50})
    (folder.parent / ".validate_storage_marker").unlink()
    assert discover(tmp_path) == Discovery(None)


def test_a_gap_in_the_drivers_notes_is_no_checkpoint(tmp_path: Path) -> None:
    """A folder of an earlier try that no report names, below one that is named."""
    trial = tmp_path / "trial"
    ray_trial(trial, steps=(2, 4, 6), noted=3)
    lines = (trial / "result.json").read_text().splitlines()
    (trial / "result.json").write_text("\n".join((*lines[:1], lines[2][:40])))
    assert latest(discover(tmp_path)) == ("checkpoint_000000", 2, "step")
