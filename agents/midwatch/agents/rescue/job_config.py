"""The configuration that a job's command line names: where it lies, and its clone. Shell.

On Ray a relative path lies in the package of the working directory. Its clone goes into a new package.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from midwatch.agents.schedulers.ray.packages import KeptPackage, keep_content
from midwatch.agents.schedulers.ray.submission import file_name, is_ray, kept, kept_argv
from midwatch.agents.schedulers.slurm.sbatch_argv import split
from midwatch.agents.schedulers.wrapping import is_sbatch
from midwatch.streams.errors import UsageError
from midwatch.streams.host.atomic_file import create_if_absent
from midwatch.streams.records import Spec

_NAME = re.compile(r"[^\s'\"=;|&<>()]+\.ya?ml(?![\w./-])")
_CLONE = re.compile(r"(?P<stem>.*)-resume(?:-(?P<number>\d+))?")
_SAME = "start it as it was: midwatch resume JOB --same"


@dataclass(frozen=True, slots=True)
class JobConfig:
    """A configuration: `name` as the command line writes it, in the word `word` of the spec's argv.

    `package`: the URI of the package that holds it; "" for a file at `path`.
    """

    name: str
    word: int
    path: Path
    text: str
    package: str = ""


@dataclass(frozen=True, slots=True)
class Clone:
    """A clone that is not written yet: its name in the command line, and where it will lie."""

    name: str
    path: Path


def find_config(spec: Spec, wanted: str = "") -> JobConfig:
    """The configuration in the job's command line; with `wanted` the one of that name.

    Raises:
        UsageError: the line names none, or several, or its file cannot be read here.
    """
    names = list(dict.fromkeys(_named(spec)))
    fitting = [(word, name) for word, name in names if wanted in ("", name, PurePath(name).name)]
    if not fitting:
        raise UsageError(
            f"the job's command line names no {wanted or 'YAML file'}",
            where=" ".join(spec.argv),
            remedy=_SAME,
        )
    if len({name for _, name in fitting}) > 1:
        raise UsageError(
            f"the job's command line names several: {', '.join(name for _, name in fitting)}",
            where="--config-file",
            remedy="name the one to change: --config-file NAME",
        )
    word, name = fitting[0]
    if is_ray(spec.argv) and not PurePath(name).is_absolute():
        return _in_package(spec, word, name)
    path = Path(spec.cwd) / name
    try:
        return JobConfig(name, word, path, path.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"it cannot be read here: {error}", where=str(path), remedy=_SAME) from error


def clone_of(config: JobConfig, text: str, spec: Spec) -> Clone:
    """The clone's name, `NAME-resume.yaml` or the next free one after it. The same content keeps its name."""
    stem, suffix = PurePath(config.name).stem, PurePath(config.name).suffix
    earlier = _CLONE.fullmatch(stem)
    stem = earlier["stem"] if earlier else stem
    for number in range(1, 10_000):
        file = f"{stem}-resume{f'-{number}' if number > 1 else ''}{suffix}"
        there = _content(config, spec, file)
        if there is None or there == text:
            return Clone(str(PurePath(config.name).with_name(file)), config.path.with_name(file))
    raise UsageError("too many clones lie there", where=str(config.path.parent), remedy="delete old ones")


def write_clone(config: JobConfig, clone: Clone, text: str, spec: Spec) -> Spec:
    """Writes the clone and returns the spec, unsigned, whose command line names it."""
    argv = list(spec.argv)
    argv[config.word] = argv[config.word].replace(config.name, clone.name)
    if not config.package:
        create_if_absent(clone.path, text.encode(), mode=0o644)
        return replace(spec, argv=tuple(argv), signature="")
    submission, folder, words = kept(tuple(argv))
    uri = keep_content(folder, _with_member(_archive(folder, config.package), clone.name, text))
    fields = {**submission.fields, "runtime_env": {**submission.fields["runtime_env"], "working_dir": uri}}
    packages = tuple(uri if package == config.package else package for package in submission.packages)
    content = replace(submission, fields=fields, packages=packages).content()
    path = folder / file_name(content)
    create_if_absent(path, content, mode=0o600)
    return replace(spec, argv=kept_argv(path, words), signature="")


def _named(spec: Spec) -> Iterator[tuple[int, str]]:
    """The YAML files in the words that reach the training, each with the place of its word."""
    argv = spec.argv
    for word in range(_first_word(argv), len(argv)):
        for found in _NAME.finditer(argv[word]):
            yield word, found[0]


def _first_word(argv: tuple[str, ...]) -> int:
    """The place of the first word after the script, the entrypoint's `--`, or the program."""
    if is_sbatch(argv):
        return len(argv) - len(split(argv[1:])[1]) + 1
    return 5 if is_ray(argv) else 1


def _in_package(spec: Spec, word: int, name: str) -> JobConfig:
    submission, folder, _ = kept(spec.argv)
    uri = str((submission.fields.get("runtime_env") or {}).get("working_dir") or "")
    if uri not in submission.packages:
        raise UsageError(
            "it lies on the cluster, where it cannot be read from here",
            where=name,
            remedy="submit the job with --working-dir, or name the file by its whole path",
        )
    inner = str(PurePath(name))
    with zipfile.ZipFile(io.BytesIO(_archive(folder, uri))) as archive:
        if inner not in archive.namelist():
            raise UsageError("the job's working directory does not hold it", where=name, remedy=_SAME)
        return JobConfig(name, word, Path(inner), archive.read(inner).decode(), uri)


def _content(config: JobConfig, spec: Spec, file: str) -> str | None:
    """What lies under the clone's name already; None if nothing does."""
    if not config.package:
        path = config.path.with_name(file)
        return path.read_text(errors="replace") if path.exists() else None
    folder = kept(spec.argv)[1]
    with zipfile.ZipFile(io.BytesIO(_archive(folder, config.package))) as archive:
        inner = str(config.path.with_name(file))
        return archive.read(inner).decode(errors="replace") if inner in archive.namelist() else None


def _archive(folder: Path, uri: str) -> bytes:
    return KeptPackage(folder, uri).content()


def _with_member(content: bytes, name: str, text: str) -> bytes:
    memory = io.BytesIO(content)
    inner = str(PurePath(name))
    with zipfile.ZipFile(memory, "a", zipfile.ZIP_DEFLATED) as archive:
        if inner not in archive.namelist():
            about = zipfile.ZipInfo(inner, (1980, 1, 1, 0, 0, 0))
            about.external_attr = 0o644 << 16
            archive.writestr(about, text)
    return memory.getvalue()
