"""What counts as right on a labelled log."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from midwatch.agents.cli import run
from midwatch.agents.replay.scoring import (
    Labelled,
    Prediction,
    Ratio,
    confusion,
    leniently,
    measure,
    mistakes,
    read_labelled,
)
from midwatch.agents.rulesets import bundles
from midwatch.streams.errors import UsageError

LOG = "start\n  boom: A  \nx1\nx2\nx3\nx4\nlast"
JUDGED = [
    (Labelled("a", LOG, "oom", False, "boom: A"), Prediction("host_oom", " boom: A ", "stop")),
    (Labelled("b", LOG, "hardware", True, "boom: A", cascade=True), Prediction("oom", "x3", "hold")),
    (Labelled("c", LOG, "nccl", True, "boom: A"), Prediction("nccl_timeout", "start\nboom: A", "restart")),
    (Labelled("d", LOG, "none", False, ""), Prediction()),
    (Labelled("e", LOG, "none", False, ""), Prediction("weird", "last", "restart")),
    (Labelled("f", LOG, "loss_spike", False, "last"), Prediction()),
]


def test_each_measure_counts_what_it_names() -> None:
    counted = {name: (ratio.hits, ratio.of) for name, ratio in measure(JUDGED).items()}
    assert counted == {
        "detected": (3, 4),
        "family": (2, 4),
        "exact type": (0, 4),
        "root line": (1, 4),
        "root line within 3 lines": (2, 4),
        "family of cascades": (0, 1),
        "root line of cascades": (0, 1),
        "false alarms": (1, 2),
        "restart precision": (1, 2),
        "restart recall": (1, 2),
        "wrong restarts of lasting failures": (0, 2),
        "wrong restarts of healthy runs": (1, 2),
        "right stops of lasting failures": (1, 2),
        "action right": (3, 6),
    }


def test_a_line_glued_behind_another_still_names_the_root() -> None:
    row = Labelled("a", LOG, "oom", False, "boom: A")
    assert measure([(row, Prediction("oom", "40% | boom: A", "stop"))])["root line"].hits == 1
    assert measure([(row, Prediction("oom", "boom", "stop"))])["root line"].hits == 0


def test_the_interval_is_wilsons() -> None:
    low, high = Ratio(8, 10).interval() or (0, 0)
    assert (round(low, 3), round(high, 3)) == (0.490, 0.943)
    assert Ratio(0, 0).interval() is None
    assert str(Ratio(8, 10)) == "8/10 80% [49,94]"


def test_the_confusion_table_and_the_mistakes_show_no_text() -> None:
    assert confusion(JUDGED) == {
        ("memory", "memory"): 1,
        ("infra", "memory"): 1,
        ("comms", "comms"): 1,
        ("none", "none"): 1,
        ("none", "other"): 1,
        ("numerics", "none"): 1,
    }
    assert [wrong["id"] for wrong in mistakes(JUDGED)] == ["b", "c", "e", "f"]
    assert "boom" not in json.dumps(mistakes(JUDGED))


def test_a_row_without_a_label_is_named() -> None:
    with pytest.raises(UsageError) as caught:
        read_labelled([(7, {"log": "x", "error_type": "oom", "transient": False})], "toy.jsonl")
    assert "root_line" in caught.value.what
    assert caught.value.where == "toy.jsonl:7"


def test_a_list_of_a_row_may_be_null() -> None:
    row = {"log": "x", "error_type": "oom", "transient": False, "root_line": "x", "also_root": None}
    (read,) = read_labelled([(1, row | {"also_type": None, "also_action": None})], "toy.jsonl")
    assert (read.also_root, read.also_type, read.also_action) == ((), (), ())


def _labelled(path: Path) -> Path:
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    rows = [
        {"id": "t1", "log": f"step 1\n{oom}\n", "error_type": "oom", "transient": False, "root_line": oom},
        {"id": "t2", "log": "all is well\n", "error_type": "none", "transient": False, "root_line": ""},
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


@pytest.fixture
def without_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules that are ready at once: the scan finds the same, and takes seconds to make."""
    monkeypatch.setattr(bundles, "watched_rules", partial(bundles.watched_rules, scan=False))


@pytest.mark.usefixtures("without_scan")
def test_the_command_scores_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "score", str(_labelled(tmp_path / "toy.jsonl")), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["version"], said["excerpts"], said["failures"]) == (1, 2, 1)
    assert said["measures"]["root line"]["hits"] == 1
    assert said["measures"]["false alarms"]["hits"] == 0
    assert said["mistakes"] == []


def test_the_command_names_what_it_cannot_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "score", str(tmp_path / "none.jsonl")]) == 2
    assert "none.jsonl" in capsys.readouterr().err
    (tmp_path / "bad.jsonl").write_text("{}\nno json\n")
    assert run(["rules", "score", str(tmp_path / "bad.jsonl")]) == 2


def test_equally_right_answers_count_and_an_action_only_leniently() -> None:
    row = Labelled("a", LOG, "nccl", False, "boom: A", False, ("x3",), ("oom",), ("restart",))
    judged = [(row, Prediction("oom", "x3", "restart"))]
    counted = {name: (ratio.hits, ratio.of) for name, ratio in measure(judged).items()}
    assert [counted[name] for name in ("family", "exact type", "root line")] == [(1, 1)] * 3
    assert (counted["action right"], counted["wrong restarts of lasting failures"]) == ((0, 1), (1, 1))
    lenient = {name: (ratio.hits, ratio.of) for name, ratio in measure(leniently(judged)).items()}
    assert (lenient["action right"], lenient["restart recall"]) == ((1, 1), (1, 1))
    assert [each["wrong"] for each in mistakes(judged)] == ["action"]
    assert mistakes(leniently(judged)) == []
