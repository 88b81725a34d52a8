"""Rows of the texts that people save of SLURM: tables of sacct and blocks of scontrol. Pure.

A table may stand below a prompt. Its cells stand between bars or commas, or in the columns that its line of
dashes shows. Without a header a row counts if only one of its cells can be the state.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from midwatch.agents.schedulers.slurm.saved_rows import SavedRow
from midwatch.agents.schedulers.slurm.text import STATES, whole_word

Split = Callable[[str], list[str]]

_SEPARATORS = "|,;\t"
_ID = re.compile(
    r"(?P<job>\d+(?:_(?:\d+|\[.*))?)(?P<component>\+\d+)?(?:\.(?P<step>\w*)\+?)?(?P<cut>\+)?", re.ASCII
)
_WORD = re.compile(r"[A-Z_]+\+?(?: |\Z)")
_CODE = re.compile(r"(\d+):(\d+)", re.ASCII)
_BLOCK = re.compile(r"^\s*(?=JobId=)", re.M)
_VALUE = r"=(.*?)(?=\s+[\w/:]+=|\s*$)"
_CANCELLED_BY = re.compile(r"\b(CANCELLED\+?) (by) (\S+)")
_GAP = "\0"  # stands for a blank within a cell


def rows_of_table(text: str) -> list[SavedRow]:
    """The rows of sacct's table. Raises ValueError: they cannot be told apart with certainty."""
    lines = [line.rstrip("\r") for line in text.splitlines() if line.strip()]
    head, below, split = _header(lines)
    found: list[SavedRow] = []
    for line in below:
        cells = split(line)
        named = dict(zip(head, cells, strict=False))
        if not head or len(cells) > len(head):
            named = _without_header(_free_cells(line))
        row = _row(named, found)
        if row is not None:
            found.append(row)
    nameless = [row for row in found if not row.job]
    if len({(row.word, row.exit_code, row.signal) for row in nameless}) > 1:
        raise ValueError("the table has several rows and no column JobID")
    return found[:1] if nameless else found


def _header(lines: Sequence[str]) -> tuple[list[str], Sequence[str], Split]:
    """The names of the columns in small letters, the lines below, and how to split these into cells."""
    for number, line in enumerate(lines):
        for separator in _SEPARATORS:
            split = _between(separator)
            names = [cell.lower() for cell in split(line)]
            if "state" in names:
                return names[: len(names) - (names[-1] == "")], lines[number + 1 :], split
        dashes = lines[number + 1] if number + 1 < len(lines) else ""
        if "state" in line.lower().split() and not dashes.strip("- ") and dashes.strip():
            spans = [found.span() for found in re.finditer("-+", dashes)]
            return [cell.lower() for cell in _columns(spans)(line)], lines[number + 2 :], _columns(spans)
    return [], lines, _free_cells


def _between(separator: str) -> Split:
    def split(line: str) -> list[str]:
        cells = [cell.strip() for cell in line.split(separator)]
        return cells[:-1] if len(cells) > 1 and not cells[-1] else cells

    return split


def _columns(spans: Sequence[tuple[int, int]]) -> Split:
    return lambda line: [line[start:end].strip() for start, end in spans]


def _free_cells(line: str) -> list[str]:
    """The cells of a row whose columns no header names."""
    for separator in _SEPARATORS:
        cells = _between(separator)(line)
        if len(cells) > 1 and _ID.fullmatch(cells[0]):
            return cells
    kept = _CANCELLED_BY.sub(rf"\1{_GAP}\2{_GAP}\3", line)
    return [cell.replace(_GAP, " ") for cell in kept.split()]


def _without_header(cells: list[str]) -> dict[str, str]:
    """The columns of a row by what stands in them. Raises ValueError: it can be read in two ways."""
    if not cells or not _ID.fullmatch(cells[0]):
        return {}
    words = [cell for cell in cells[1:] if _is_state(cell)]
    codes = {cell for cell in cells[1:] if _CODE.fullmatch(cell)}
    if len(words) > 1 or len(codes) > 1:
        raise ValueError(f"the table has no header, and the row of {cells[0]} can be read in two ways")
    if not words:
        return {}
    return {"jobid": cells[0], "state": words[0], "exitcode": next(iter(codes), "")}


def _is_state(cell: str) -> bool:
    try:
        return whole_word(cell).partition(" ")[0] in STATES
    except ValueError:
        return False


def _row(cells: dict[str, str], above: Sequence[SavedRow]) -> SavedRow | None:
    """The row of these cells; None for a line that is no row of a job."""
    word, shown = cells.get("state", ""), cells.get("jobid", "")
    found = _ID.fullmatch(shown)
    if not word.strip("- ") or (found is None and (shown or not _WORD.match(word))):
        return None
    code, signal = _codes(cells.get("exitcode", ""))
    if found is None:
        return SavedRow("", word, cells.get("reason", ""), code, signal, raw=cells.get("jobidraw", ""))
    job, part = found["job"], found["component"] or ""
    part = "" if part == "+0" else part
    if found["step"] is not None:
        part = f"{part}.{found['step']}" if part else _step(found["step"])
    elif found["cut"]:
        # A narrow column cut the step away, or the end of the id itself.
        job, part = (job, "step") if above and above[-1].job == job else (shown, "")
    raw = cells.get("jobidraw", "").partition(".")[0]
    return SavedRow(job, word, cells.get("reason", ""), code, signal, part=part, raw=raw)


def _step(name: str) -> str:
    """The name of a step, whole where a narrow column cut a known one."""
    return next((known for known in ("extern", "batch") if name and known.startswith(name)), name or "step")


def _codes(text: str) -> tuple[int | None, int | None]:
    found = _CODE.fullmatch(text)
    return (int(found[1]), int(found[2]) or None) if found else (None, None)


def rows_of_blocks(text: str) -> list[SavedRow]:
    """The rows of `scontrol show job`, one for each of its blocks."""
    return list(_blocks(text))


def _blocks(text: str) -> Iterator[SavedRow]:
    for block in _BLOCK.split(text):
        word = _value("JobState", block)
        if not word:
            continue
        number, leader = _value("JobId", block), _value("HetJobId", block)
        array, task = _value("ArrayJobId", block), _value("ArrayTaskId", block)
        job = f"{array}_{task if task.isdigit() else f'[{task}]'}" if array and task else number
        offset = _value("HetJobOffset", block)
        code, signal = _codes(_value("ExitCode", block))
        restarts = _value("Restarts", block)
        yield SavedRow(
            leader or job,
            word,
            _value("Reason", block),
            code,
            signal,
            part=f"+{offset}" if leader and offset not in ("", "0") else "",
            raw=number,
            restarts=int(restarts) if restarts.isdigit() else 0,
        )


def _value(name: str, block: str) -> str:
    """The first value of that name. The job's own name and command may hold the same words later."""
    found = re.search(rf"(?:^|\s){name}{_VALUE}", block, re.M)
    return found[1] if found else ""
