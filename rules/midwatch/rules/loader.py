"""The shell of the rules: it reads files into bytes by name. No other module of the rules touches files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path

from midwatch.rules.bundle import read_bundle
from midwatch.rules.model import Bundle
from midwatch.rules.oellm.composition import compose
from midwatch.rules.oellm.generation import is_foreign
from midwatch.rules.oellm.reading import Config, read_config
from midwatch.rules.prefilter.plan import PrefilterPlan
from midwatch.rules.prefilter.plan_file import plan_of_text
from midwatch.streams.errors import ConfigurationError
from midwatch.streams.strict_yaml import read_yaml

_FOLDERS = ("packs", "presets")
PLANNED = "default"
"""The preset whose prefilter plan is shipped."""
_ENDINGS = (".yaml", ".yml")


def shipped_files() -> dict[str, bytes]:
    """The shipped packs and presets, by `packs/<name>.yaml` and `presets/<name>.yaml`."""
    root = resources.files("midwatch.rules")
    return {
        f"{folder}/{entry.name}": entry.read_bytes()
        for folder in _FOLDERS
        for entry in sorted(root.joinpath(folder).iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(_ENDINGS)
    }


@cache
def shipped_plan() -> PrefilterPlan:
    """The prefilter plan of the preset `PLANNED`, which takes seconds to make. `make pages` writes it."""
    file = resources.files("midwatch.rules").joinpath("plans", f"{PLANNED}.json")
    return plan_of_text(file.read_bytes())


def directory_files(directory: Path) -> dict[str, bytes]:
    """The YAML files of a directory, without its subdirectories, by their path as given."""
    try:
        return {
            str(path): path.read_bytes()
            for path in sorted(directory.iterdir())
            if path.suffix in _ENDINGS and path.is_file()
        }
    except OSError as error:
        raise ConfigurationError(
            f"cannot read the rules: {error.strerror}",
            where=str(error.filename or directory),
            remedy="Name a directory or a file of rules that this user may read.",
        ) from error


def load_bundle(name: str) -> Bundle:
    """The bundle of a shipped preset or pack (`megatron_production`), or of a file (`./mine.yaml`).

    A file may include shipped files and the files beside it. A configuration of oellm-autoexp is read with
    the files that it names. Shipped files are not tried on their examples: the tests of the product did so.
    Raises RuleErrors, or ConfigurationError if there is no such file.
    """
    files, root = bundle_files(name)
    shipped = shipped_files()
    return read_bundle(root, files, [path for path in shipped if files[path] == shipped[path]])


def bundle_files(name: str) -> tuple[Mapping[str, bytes], str]:
    """The arguments of `read_bundle`: the files that a bundle may name, and the key of its root."""
    shipped = shipped_files()
    if not name.endswith(_ENDINGS):
        return shipped, name
    path = Path(name)
    beside = directory_files(path.parent)
    if str(path) not in beside:
        raise ConfigurationError(
            "there is no such file of rules",
            where=name,
            remedy="`midwatch rules list` shows the shipped rules.",
        )
    if is_config(str(path), beside[str(path)]):
        root, disk = path.as_posix(), _OnDisk()
        named = compose(root, disk, []).read
        return {**shipped, **{read: disk[read] for read in named}}, root
    return {**shipped, **beside}, str(path)


def is_config(path: str, content: bytes) -> bool:
    """Whether a file is a configuration of oellm-autoexp and not a midwatch rule file."""
    tree = read_yaml(path, content, [])
    return tree is not None and is_foreign(tree)


def load_config(path: str) -> Config:
    """A configuration of oellm-autoexp with all files that it names. Raises RuleErrors."""
    return read_config(Path(path).as_posix(), _OnDisk())


class _OnDisk:
    """Files by path, each read when it is needed."""

    def __contains__(self, path: object) -> bool:
        return Path(str(path)).is_file()

    def __getitem__(self, path: str) -> bytes:
        try:
            return Path(path).read_bytes()
        except OSError as error:
            raise ConfigurationError(
                f"cannot read the configuration: {error.strerror}",
                where=path,
                remedy="Name a file that this user may read.",
            ) from error
