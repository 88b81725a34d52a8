"""Plain words: no sentence of a docstring or a comment in product code is longer than a reader can hold."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from house.tree import ROOT, SOURCE_ROOTS, files_of_repository

LONGEST_SENTENCE = 25
"""Words. Code in backticks is one word, and so is a word with a hyphen."""

_CODE = re.compile(r"`[^`]*`")
_END = re.compile(r"(?<=[.!?:])[)\"']*\s+(?=[`\"'(\[A-Z0-9*])")
_ABBREVIATION = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|No|approx)\.")
_ITEM = re.compile(r"(?:[-*•]|\d+\.|\w+:)\s")
_PRAGMA = re.compile(r"(noqa|type: ignore|pragma|fmt:|mypy:|ruff:|!)")
_WORD = re.compile(r"\w[\w'./-]*")


def check(root: Path = ROOT) -> list[str]:
    """One line for each sentence of product code that is too long, with its place and its words."""
    modules = (path for path in files_of_repository(root) if path.suffix == ".py")
    ours = (path for path in modules if path.relative_to(root).parts[0] in SOURCE_ROOTS)
    return [f"{path.relative_to(root)}:{found}" for path in ours for found in too_long(path)]


def too_long(path: Path) -> Iterator[str]:
    """Sentences of one module with more than `LONGEST_SENTENCE` words: line, count and the sentence."""
    for line, text in (*_docstrings(path), *_comments(path)):
        for sentence in sentences(text):
            if (words := count(sentence)) > LONGEST_SENTENCE:
                yield f"{line}: {words} words in a sentence ({LONGEST_SENTENCE} at most): {sentence}"


def count(sentence: str) -> int:
    """Its words; code in backticks is one."""
    return len(_WORD.findall(_CODE.sub("code", sentence)))


def sentences(text: str) -> Iterator[str]:
    """The sentences of a docstring: paragraphs and list items end one, blocks of code are none."""
    for paragraph in _paragraphs(text):
        hidden = _ABBREVIATION.sub(lambda found: found[1] + "\0", paragraph)
        yield from (part.replace("\0", ".").strip() for part in _END.split(hidden) if part.strip())


def _paragraphs(text: str) -> Iterator[str]:
    lines = text.expandtabs().splitlines()
    margin = min((len(x) - len(x.lstrip()) for x in lines[1:] if x.strip()), default=0)
    taken: list[str] = []
    after_blank = True
    for number, whole in enumerate(lines):
        line = whole if number == 0 else whole[margin:]
        is_code = after_blank and line.startswith("    ")
        if not line.strip() or is_code or _ITEM.match(line.strip()):
            if taken:
                yield " ".join(taken)
            taken = []
        after_blank = not line.strip() or is_code
        if line.strip() and not is_code:
            taken.append(line.strip())
    if taken:
        yield " ".join(taken)


def _docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Docstrings of modules, classes and functions, and the strings below an attribute."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text


def _comments(path: Path) -> Iterator[tuple[int, str]]:
    """Comments; those on lines of their own that follow each other are one text."""
    start, taken = 0, list[str]()
    with tokenize.open(path) as source:
        for token in tokenize.generate_tokens(source.readline):
            if token.type != tokenize.COMMENT:
                continue
            text = token.string.lstrip("#").strip()
            if _PRAGMA.match(text):
                continue
            alone = token.line.lstrip().startswith("#")
            if taken and not (alone and token.start[0] == start + len(taken)):
                yield start, " ".join(taken)
                taken = []
            if not taken:
                start = token.start[0]
            taken.append(text)
    if taken:
        yield start, " ".join(taken)
