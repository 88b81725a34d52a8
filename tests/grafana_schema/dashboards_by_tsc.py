"""`make check-dashboards`: the committed dashboards against Grafana's own types, by TypeScript's compiler."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from house.parts import require
from house.tree import ROOT

HERE = Path(__file__).parent
DASHBOARDS = sorted((ROOT / "observe" / "dashboards").glob("*.json"))
MISTAKES = (
    ('"drawStyle": "line"', '"drawStyle": "lines"'),
    ('"mode": "absolute"', '"mode": "about"'),
    ('"gridPos"', '"gridPosition"'),
    ('"type": "state-timeline"', '"type": "lanes"'),
    ('"sort": 1', '"sort": 99'),
)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pinned packages, and no dashboard yet."""
    require("npm and Node", shutil.which("npm") is not None, "apt-get install npm")
    folder = tmp_path_factory.mktemp("schema")
    for name in ("package.json", "package-lock.json", "tsconfig.json", "board.ts"):
        shutil.copy(HERE / name, folder)
    done = subprocess.run(
        ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return folder


def complaints(workshop: Path, text: str) -> str:
    """What the compiler says of one dashboard."""
    shown = f"import type {{ Board }} from './board';\nexport const board: Board = {text};\n"
    (workshop / "dashboard.ts").write_text(shown)
    tsc = workshop / "node_modules" / ".bin" / "tsc"
    done = subprocess.run(
        [tsc, "-p", "."], cwd=workshop, capture_output=True, text=True, check=False, timeout=120
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda path: path.stem)
def test_it_is_a_dashboard_by_grafanas_own_types(workshop: Path, dashboard: Path) -> None:
    assert complaints(workshop, dashboard.read_text()) == ""


@pytest.mark.parametrize(("right", "wrong"), MISTAKES)
def test_a_mistake_would_be_seen(workshop: Path, right: str, wrong: str) -> None:
    text = (ROOT / "observe" / "dashboards" / "midwatch-job.json").read_text()
    assert right in text
    assert "error TS" in complaints(workshop, text.replace(right, wrong, 1))
