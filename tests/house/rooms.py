"""The floor plan of the product: no class name twice, few modules at the top of a part, and no circles."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from house.tree import ROOT, SOURCE_ROOTS, files_of_repository

MODULES_AT_THE_TOP = 8
"""Of a part, beside its folders."""


def check(root: Path = ROOT) -> list[str]:
    """One sentence for each thing that makes a newcomer lose the way."""
    modules = dict(_modules(root))
    imports = {name: set(_imported(path, modules)) - {name} for name, path in modules.items()}
    return [*_names_twice(modules, root), *_crowded(root), *_circles(imports)]


def _modules(root: Path) -> Iterator[tuple[str, Path]]:
    for path in files_of_repository(root):
        parts = path.relative_to(root).parts
        if parts[0] in SOURCE_ROOTS and path.suffix == ".py":
            name = ".".join(parts[1:]).removesuffix(".py")
            yield name.removesuffix(".__init__"), path


def _names_twice(modules: Mapping[str, Path], root: Path) -> Iterator[str]:
    places = defaultdict[str, list[str]](list)
    for path in modules.values():
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path.relative_to(root)}:{node.lineno}")
    for name, found in sorted(places.items()):
        if len(found) > 1:
            yield f"{found[0]}: the class name {name} stands also at {', '.join(found[1:])}"


def _crowded(root: Path) -> Iterator[str]:
    for part in SOURCE_ROOTS:
        folder = root / part / "midwatch" / part
        flat = [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]
        if len(flat) > MODULES_AT_THE_TOP:
            yield f"{folder.relative_to(root)}: {len(flat)} modules, {MODULES_AT_THE_TOP} at most: make rooms"


def _imported(path: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("midwatch"):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules else node.module


def _circles(imports: Mapping[str, set[str]]) -> Iterator[str]:
    """Of modules, and within each folder of what stands in it side by side."""
    for circle in circles(imports):
        yield f"modules import each other in a circle: {', '.join(circle)}"
    folders = {name.rsplit(".", depth)[0] for name in imports for depth in range(1, name.count(".") + 1)}
    for folder in sorted(folders):
        for circle in circles(_within(folder, imports)):
            yield f"{folder}: its rooms import each other in a circle: {', '.join(circle)}"


def _within(folder: str, imports: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """What a folder holds, and what of that imports what."""
    at = folder.count(".") + 1
    inner: dict[str, set[str]] = defaultdict(set)
    for name, targets in imports.items():
        if name.startswith(f"{folder}."):
            here = name.split(".")[at]
            there = {target.split(".")[at] for target in targets if target.startswith(f"{folder}.")}
            inner[here] |= there - {here}
    return inner


def circles(imports: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Groups of names that reach each other, each sorted."""
    reached = {name: _reached(name, imports) for name in imports}
    found = {tuple(sorted(n for n in reached[name] if name in reached.get(n, ()))) for name in imports}
    return [list(group) for group in sorted(found) if group]


def _reached(start: str, imports: Mapping[str, Iterable[str]]) -> set[str]:
    seen, todo = set[str](), list(imports.get(start, ()))
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += imports.get(name, ())
    return seen
