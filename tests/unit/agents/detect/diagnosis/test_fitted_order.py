"""The comparison that `make fit-diagnosis` makes, on made-up logs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bench import fit_root
from bench.fit_root_report import TITLE, Comparison, page_with
from bench.pairwise import fitted, pairs_of, score

OOM = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
WAITED = (
    "[rank3]: RuntimeError: [/src/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting "
    "1800000ms for recv operation to complete"
)
ENDED = "srun: error: n4: task 3: Exited with exit code 1"


def test_the_weights_speak_for_what_the_right_lines_have() -> None:
    right, wrong = {"follows": 0.0, "place": 1.0}, {"follows": 1.0, "place": 0.5}
    weights = fitted(pairs_of([right], [wrong, wrong]), 0.1)
    assert weights["follows"] < 0 < weights["place"]
    assert score(weights, right) > score(weights, wrong)
    assert weights == fitted(pairs_of([right], [wrong, wrong]), 0.1), "the same in every run"


def test_the_comparison_counts_the_right_lines_of_every_batch(tmp_path: Path) -> None:
    for batch in fit_root.BATCHES:
        logs = [
            labelled(f"{batch}/one", [WAITED, OOM, ENDED], "oom", OOM),
            labelled(f"{batch}/two", [OOM, ENDED], "oom", OOM),
            labelled(f"{batch}/two", ["all went well"], "none", ""),
        ]
        (tmp_path / f"{batch}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in logs))
    rows = {row.name: row for row in fit_root.compare(fit_root.read_cases(tmp_path, scan=False))}
    every = rows["all"]
    assert (every.of, every.repositories, every.by_place, every.by_hand, every.held_out) == (8, 8, 4, 8, 8)
    assert rows["dev"].transferred is None
    assert rows["batch 3"].transferred == 2


def labelled(source: str, lines: list[str], kind: str, root: str) -> dict[str, object]:
    log = "\n".join(lines) + "\n"
    return {
        "id": source,
        "source": f"{source} train.log",
        "log": log,
        "error_type": kind,
        "transient": False,
        "root_line": root,
        "thread": source,
    }


def test_a_folder_without_the_labelled_logs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["fit", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"lacks dev\.jsonl, .*LABELS=FOLDER"):
        fit_root.main()


@pytest.mark.parametrize(("held_out", "kept"), [(8, "order by hand decides"), (10, "so they should decide")])
def test_the_section_says_what_is_kept_and_replaces_the_old_one(held_out: int, kept: str) -> None:
    rows = [
        Comparison("batches 2 and 3", 12, 6, 9, 10, held_out, 0, held_out, 1.0, 30, 5),
        Comparison("all", 12, 6, 9, 10, held_out, 0, None, 1.0, 30, 5),
    ]
    page = page_with(f"# Page\n\n{TITLE}\n\nold\n\n## Next\n\nstays\n", rows)
    assert page.startswith(f"# Page\n\n{TITLE}\n")
    assert page.endswith("\n\n## Next\n\nstays\n")
    assert "old" not in page
    assert kept in " ".join(page.split())
    assert page_with(page, rows) == page
