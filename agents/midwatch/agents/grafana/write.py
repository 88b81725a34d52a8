"""Writes all files of the folder `observe`: `python -m midwatch.agents.grafana.write observe`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

from midwatch.agents.grafana import services
from midwatch.agents.grafana.board import Dashboard
from midwatch.agents.grafana.board_json import dashboard_json
from midwatch.agents.grafana.fleet import FLEET
from midwatch.agents.grafana.incident import INCIDENT
from midwatch.agents.grafana.job import JOB
from midwatch.agents.grafana.pipeline import PIPELINE

DASHBOARDS: Final[tuple[Dashboard, ...]] = (FLEET, JOB, INCIDENT, PIPELINE)
_HEAD = "Written by `python -m midwatch.agents.grafana.write observe`; a test keeps it true."


def files() -> dict[str, str]:
    """The text of each file by its path below `observe`."""
    prometheus = services.scrapes(
        services.targets_in_compose(),
        "alerts.yml",
        "alertmanager:9093",
        optional=services.targets_in_compose(("messages",)),
    )
    documents = {
        "prometheus/prometheus.yml": prometheus,
        "prometheus/alerts.yml": services.alert_rules(),
        "alertmanager/alertmanager.yml": services.alertmanager(),
        "grafana/datasources/midwatch.yml": services.datasources(),
        "grafana/dashboards/midwatch.yml": services.dashboard_provider(),
        "collector.yml": services.collector(),
        "loki.yml": services.loki(),
        "tempo.yml": services.tempo(),
    }
    boards = {
        f"dashboards/{board.uid}.json": json.dumps(dashboard_json(board), indent=1, ensure_ascii=False) + "\n"
        for board in DASHBOARDS
    }
    return {path: services.text(document, _HEAD) for path, document in documents.items()} | boards


def main(folder: Path) -> None:
    """Write them."""
    for name, content in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
