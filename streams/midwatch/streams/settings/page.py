"""Writes the reference page of the settings: `python -m midwatch.streams.settings.page`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from midwatch.streams.settings.kinds import duration_text, size_text
from midwatch.streams.settings.reader import leaves, variable_name
from midwatch.streams.settings.secret import Secret

_HEAD = """# Settings

Written by `python -m midwatch.streams.settings.page > docs/settings.md`; a test keeps it true.

midwatch reads the first file of: `--config FILE`, the variable `MIDWATCH_CONFIG`, `./midwatch.yaml`,
`~/.config/midwatch/midwatch.yaml`. No file is needed, because every setting has a default. A variable
wins over the file, and `--set KEY=VALUE` wins over both. Two underscores separate the levels in a variable's
name, and commas separate the items of a list. An empty variable counts as not set.

Durations and sizes carry their unit: `200ms`, `10s`, `5m`, `1h30m`, `7d`; `256KiB`, `8MiB`. Relative paths
start at the directory of the file that names them. Secrets belong in files of their own or in variables,
never in the settings file. midwatch reports all mistakes at once, with file, line, column and remedy.
`midwatch doctor` shows the settings in force and where they came from.

```yaml
cluster: night
kafka:
  bootstrap: [kafka-1.example:9093, kafka-2.example:9093]
  tls: true
  username: midwatch
  mechanism: SCRAM-SHA-512
  password_file: /run/secrets/kafka
redis:
  url: rediss://redis.example:6379/0
  password_file: /run/secrets/redis
detect:
  limits: {training: 15m}
```
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for section, entries in groupby(_rows(), key=lambda row: row[0]):
        title = f"`{section}`" if section else "Top level"
        parts.append(f"## {title}\n")
        parts.append("| setting | kind | default | | variable |\n|---|---|---|---|---|")
        parts += [
            f"| `{name}` | {kind} | {default} | {description} | `{variable}` |"
            for _, name, kind, default, description, variable in entries
        ]
        parts.append("")
    return "\n".join(parts)


def _rows() -> Iterator[tuple[str, str, str, str, str, str]]:
    for path, entry in leaves():
        kind = entry.metadata["kind"]
        shown = _default(kind.name, entry.default)
        description = entry.metadata["description"]
        yield ".".join(path[:-1]), path[-1], kind.name, shown, description, variable_name(path)


def _default(kind: str, value: object) -> str:
    if value is None or value in ("", ()) or isinstance(value, Secret):
        return ""
    if kind == "duration" and isinstance(value, float):
        text = duration_text(value)
    elif kind == "size" and isinstance(value, int):
        text = size_text(value)
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, tuple):
        text = f"[{', '.join(map(str, value))}]"
    else:
        text = value.as_posix() if isinstance(value, Path) else str(value)
    return f"`{text}`"


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201 (the page is its output)
