"""Whether one file of a checkpoint is whole, and which step it holds. This module never unpickles anything.

`torch.save` writes a zip archive, and the archive's directory comes last. A file that was cut short has none.
A safetensors file begins with a table of its tensors, and the table gives the file's length.
"""

from __future__ import annotations

import json
import pickletools
import zipfile

from midwatch.agents.schedulers.checkpoint_store import Place

WEIGHTS = frozenset({".pt", ".pth", ".bin", ".distcp", ".safetensors", ".ckpt"})

_ZIP = b"PK\x03\x04"
_TABLE_BYTES = 100 * 1024 * 1024  # the longest table that the format allows
_OPCODES = 100_000  # Lightning writes the step among the first ten
_INTEGERS = frozenset({"BININT", "BININT1", "BININT2", "INT", "LONG1"})
_NOTES = frozenset({"BINPUT", "LONG_BINPUT", "MEMOIZE", "PUT", "FRAME"})  # between a key and its value


def torn(path: Place) -> str:
    """Why this file of weights was cut short; "" if it seems whole. Raises OSError if it cannot be read."""
    if path.stat().st_size == 0:
        return "is empty"
    if path.suffix == ".safetensors":
        return _torn_tensors(path)
    return "was cut short" if _begins_as_zip(path) and not is_whole_zip(path) else ""


def not_saved(path: Place) -> str:
    """Why this is no whole file of `torch.save`; "" if it is one. Raises OSError if it cannot be read."""
    return "" if is_whole_zip(path) else torn(path) or "is no whole file of torch.save"


def is_whole_zip(path: Place) -> bool:
    """Whether the file is a zip archive with its directory. It reads the directory only, not the content."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            return bool(archive.namelist())
    except (zipfile.BadZipFile, ValueError):
        return False


def step_inside(path: Place) -> int | None:
    """The `global_step` that Lightning wrote into a whole file of `torch.save`; None if it holds none."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            if not names:
                return None
            with archive.open(names[0]) as pickled:
                return _integer_after(pickled, "global_step")
    except (zipfile.BadZipFile, ValueError, NotImplementedError, RuntimeError):
        return None


def _integer_after(pickled: object, key: str) -> int | None:
    """The integer that follows the text `key` in a pickle. It reads the opcodes and runs none of them."""
    found = False
    for count, (opcode, argument, _) in enumerate(pickletools.genops(pickled)):  # type: ignore[arg-type] # any reader of bytes
        if count > _OPCODES:
            return None
        if found and opcode.name not in _NOTES:
            return (
                argument if opcode.name in _INTEGERS and isinstance(argument, int) and argument >= 0 else None
            )
        found = found or argument == key
    return None


def _begins_as_zip(path: Place) -> bool:
    with path.open("rb") as file:
        return bool(file.read(len(_ZIP)) == _ZIP)


def _torn_tensors(path: Place) -> str:
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 0 < length <= min(_TABLE_BYTES, size - 8):
            return "was cut short"
        try:
            table = json.loads(file.read(length))
            ends = [entry["data_offsets"][1] for name, entry in table.items() if name != "__metadata__"]
            needed = 8 + length + max(ends, default=0)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            return "has a table that cannot be read"
    return "" if size >= needed else f"has {size} of {needed} bytes"
