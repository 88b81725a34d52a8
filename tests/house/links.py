"""Dead links: every relative link and image in Markdown leads to a file, and to a heading that is there.

Links to other hosts are not followed: the gate gives the same answer without a network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

from house.tree import ROOT, files_of_repository

_HTML_TARGET = re.compile(r"""\b(?:href|src)\s*=\s*["']([^"']+)["']""", re.IGNORECASE)
_HTML_ANCHOR = re.compile(r"""\b(?:id|name)\s*=\s*["']([^"']+)["']""", re.IGNORECASE)
_UNRESOLVED = re.compile(r"\[[^\]\[]+\]\[[^\]\[]*\]")


def dead_links(page: Path, root: Path = ROOT) -> Iterator[str]:
    """One sentence for each link of the Markdown file `page` that leads nowhere."""
    for line, token in _tokens(page):
        for target in _targets(token):
            if reason := _why_dead(page, target, root):
                yield f"{page.relative_to(root)}:{line}: {target}: {reason}"
        if token.type == "text" and (reference := _UNRESOLVED.search(token.content)):
            yield f"{page.relative_to(root)}:{line}: {reference[0]}: no such link definition on this page"


def check(root: Path = ROOT) -> list[str]:
    """The dead links of all Markdown files of the repository."""
    pages = [path for path in files_of_repository(root) if path.suffix.lower() == ".md"]
    return [problem for page in pages for problem in dead_links(page, root)]


def _why_dead(page: Path, target: str, root: Path) -> str:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return ""
    path = unquote(parts.path)
    if path.startswith("/"):
        return "starts with /, which is another place on every machine"
    file = (page.parent / path).resolve() if path else page
    if not file.exists():
        return "no such file"
    if not file.is_relative_to(root):
        return "leads out of the repository"
    if parts.fragment and file.suffix.lower() == ".md" and unquote(parts.fragment) not in _anchors(file):
        return "no such heading"
    return ""


def _tokens(page: Path) -> Iterator[tuple[int, Token]]:
    for block in MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8")):
        line = block.map[0] + 1 if block.map else 1
        yield line, block
        for inline in block.children or ():
            yield line, inline


def _targets(token: Token) -> list[str]:
    if token.type == "link_open":
        return [str(token.attrGet("href"))]
    if token.type == "image":
        return [str(token.attrGet("src"))]
    if token.type in {"html_inline", "html_block"}:
        return _HTML_TARGET.findall(token.content)
    return []


@cache
def _anchors(page: Path) -> frozenset[str]:
    """The fragments that a Git forge gives the headings of a page, and its HTML anchors."""
    anchors: set[str] = set()
    seen: dict[str, int] = {}
    heading = False
    for _, token in _tokens(page):
        if token.type in {"html_inline", "html_block"}:
            anchors.update(_HTML_ANCHOR.findall(token.content))
        if token.type == "inline" and heading:
            slug = _slug(token)
            anchors.add(f"{slug}-{seen[slug]}" if slug in seen else slug)
            seen[slug] = seen.get(slug, 0) + 1
        heading = token.type == "heading_open"
    return frozenset(anchors)


def _slug(heading: Token) -> str:
    text = "".join(child.content for child in heading.children or ())
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
