"""Two wrong tables. Each passes every test without faults; the soak must convict both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from midwatch.streams.app import App
from midwatch.streams.tables.table import RedisTable


def _nothing(app: App) -> None:
    """The honest worker needs no preparation."""


@dataclass(frozen=True)
class Variant:
    table: type[RedisTable] = RedisTable
    prepare: Callable[[App], None] = _nothing


MUTANTS = {"honest": Variant()}
