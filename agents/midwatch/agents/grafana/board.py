"""What a dashboard consists of, as values. Pure; `board_json` gives them the form that Grafana reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Source = Literal["prometheus", "loki"]
PanelKind = Literal["timeseries", "stat", "state-timeline", "table", "logs", "alertlist"]


@dataclass(frozen=True, slots=True)
class Query:
    """One query. `legend` may name labels in double braces. `instant`: the newest value alone."""

    expression: str
    legend: str = ""
    instant: bool = False
    source: Source = "prometheus"


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel; `what` says what a reader sees in it. `words`: the texts of the values 1, 2, 3 …"""

    title: str
    kind: PanelKind
    what: str
    queries: tuple[Query, ...] = ()
    unit: str = "short"
    width: int = 12
    height: int = 8
    words: tuple[str, ...] = ()
    good: frozenset[str] = frozenset()
    bad: frozenset[str] = frozenset()
    red_from: float | None = None


@dataclass(frozen=True, slots=True)
class Annotation:
    """An annotation on the curves. `value_is_time`: the value is the moment, in milliseconds since 1970."""

    name: str
    what: str
    colour: str
    query: Query
    title: str
    value_is_time: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """A variable at the dashboard's top: the values of a label."""

    name: str
    label: str
    expression: str


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One dashboard. Its `uid` stands in links, so it must not change."""

    uid: str
    title: str
    what: str
    panels: tuple[Panel, ...]
    annotations: tuple[Annotation, ...] = ()
    choices: tuple[Choice, ...] = ()
    since: str = "now-3h"

    @property
    def queries(self) -> tuple[Query, ...]:
        """The queries of all panels and annotations."""
        panels = tuple(query for panel in self.panels for query in panel.queries)
        return panels + tuple(annotation.query for annotation in self.annotations)
