"""Finds the checkpoints of NeMo of which each rank of the model has a file in a folder of its own.

The folders lie in the checkpoint directory, and a file has the same name in each:

- `mp_rank_00/`: tensor parallelism.
- `tp_rank_00_pp_rank_000/`: tensor and pipeline parallelism.
- `mp_rank_00_fsdp_shard_00000/`, `fsdp_shard_00000/`: FSDP, with and without tensor parallelism.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product

from midwatch.agents.schedulers.checkpoint_files import not_saved
from midwatch.agents.schedulers.checkpoint_store import Place

_FORMS = tuple(
    re.compile(form)
    for form in (
        r"(mp_rank_)(\d{2,})",
        r"(tp_rank_)(\d{2,})(_pp_rank_)(\d{3,})",
        r"(mp_rank_)(\d{2,})(_fsdp_shard_)(\d{5,})",
        r"(fsdp_shard_)(\d{5,})",
    )
)
_RANKS = 100_000  # more than any job has; folders that name more are not ranks'


def ranked(entries: Sequence[Place]) -> Iterator[tuple[str, tuple[Place, ...], str]]:
    """Each checkpoint by name: its files, and why it is not whole ("" if it is).

    A checkpoint is whole if every rank has a whole file of it. The numbers in the names of the folders tell
    which ranks there are: from 0 to the highest one.
    """
    folders = [entry for entry in entries if entry.is_dir()]
    for form in _FORMS:
        parts = [match.groups() for folder in folders if (match := form.fullmatch(folder.name))]
        if not parts:
            continue
        here = folders[0].parent
        expected = _all_ranks(parts)
        names = sorted(
            {file.name for each in expected if (here / each).is_dir() for file in (here / each).iterdir()}
        )
        for name in names:
            yield name, *_judged(here, expected, name)


def _judged(here: Place, expected: Sequence[str], name: str) -> tuple[tuple[Place, ...], str]:
    files = [here / folder / name for folder in expected]
    there = tuple(file for file in files if file.is_file())
    missing = next((file.parent.name for file in files if file not in there), "")
    if missing:
        return there, f"{missing} lacks it"
    for file in there:
        if why := not_saved(file):
            return there, f"its file in {file.parent.name} {why}"
    return there, ""


def _all_ranks(parts: Sequence[Sequence[str]]) -> list[str]:
    """The folders' names for all numbers from 0 to the highest ones; as they are if those are too many."""
    columns = list(zip(*parts, strict=True))
    counts = [max(map(int, numbers)) + 1 for numbers in columns[1::2]]
    total = 1
    for count in counts:
        total *= count
    if total > _RANKS:
        return ["".join(each) for each in parts]
    words, widths = parts[0][0::2], [min(map(len, numbers)) for numbers in columns[1::2]]
    return [
        "".join(f"{word}{number:0{width}d}" for word, width, number in zip(words, widths, ranks, strict=True))
        for ranks in product(*map(range, counts))
    ]
