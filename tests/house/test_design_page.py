"""Code and pages agree: cited headings exist, and the table of topics is that of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from house.tree import ROOT, files_of_repository
from midwatch.streams.topics import Topics, TopicSpec

DESIGN = ROOT / "docs" / "design.md"
HOW_IT_WORKS = ROOT / "docs" / "how-it-works.md"
HEADINGS = frozenset(re.findall(r"^#+ (.+)$", DESIGN.read_text(encoding="utf-8"), re.MULTILINE))
DAY_MS = 86_400_000

_CITED = re.compile(r"`docs/design\.md`,\s+([^`]*)")
_ELSEWHERE = re.compile(r"\bDESIGN\b|\b[Ss]ection \d|\bdesign page\b|/facts/")


def sources() -> list[Path]:
    """All code, but for this file, which spells what it looks for."""
    endings = (".py", ".lua", ".sh")
    return [f for f in files_of_repository() if f.suffix in endings and f != Path(__file__).resolve()]


def citations() -> list[tuple[Path, str]]:
    """File and what follows each citation of the page; a line may break within it."""
    texts = ((file, file.read_text(encoding="utf-8")) for file in sources())
    return [
        (file, re.sub(r"\s+(?:# )?", " ", cited)) for file, text in texts for cited in _CITED.findall(text)
    ]


def is_heading(cited: str) -> bool:
    """Whether the text begins with a heading's whole name."""
    return any(cited.startswith(name) and cited[len(name) :][:1] in set(").;:,") for name in HEADINGS)


def test_some_comments_cite_the_page() -> None:
    assert citations()


def test_each_cited_heading_is_there() -> None:
    assert [(file.name, cited) for file, cited in citations() if not is_heading(cited)] == []


def test_no_comment_cites_a_page_that_the_repository_lacks() -> None:
    texts = ((file, file.read_text(encoding="utf-8")) for file in sources())
    wrong = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file, text in texts
        for number, line in enumerate(text.splitlines(), 1)
        if _ELSEWHERE.search(line.replace("docs/design.md", ""))
    ]
    assert wrong == []


@pytest.mark.parametrize("topic", Topics().specifications(), ids=lambda topic: topic.name)
def test_the_table_says_how_a_topic_is_made(topic: TopicSpec) -> None:
    kept = "compacted" if topic.retention_ms is None else f"{topic.retention_ms // DAY_MS} days"
    time = "append" if topic.append_time else "sender"
    lines = HOW_IT_WORKS.read_text(encoding="utf-8").splitlines()
    (row,) = [line for line in lines if line.startswith(f"| `{topic.name}` ")]
    assert [cell.strip() for cell in row.split("|")[3:6]] == [str(topic.partitions), kept, time]
