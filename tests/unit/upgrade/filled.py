"""A value of any record class with something in every field, the same each time. It names no class."""

from __future__ import annotations

import types
import zlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from midwatch.streams.records.bounds import JobText

JOB = "slurm:ada/llm"
T = TypeVar("T")


def filled(cls: type[T]) -> T:
    """Optional fields are there, mappings and tuples have one entry, and hardly two numbers are the same."""
    hints = get_type_hints(cls, include_extras=True)
    return cls(**{entry.name: _value(hints[entry.name], entry.name) for entry in fields(cls)})  # type: ignore[arg-type]  # every record is a dataclass


def _value(hint: Any, name: str) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if hint is JobText or (is_dataclass(hint) and isinstance(hint, type)):
        return JOB if hint is JobText else filled(hint)
    if origin is Literal:
        return inner[-1]
    if origin in (Annotated, Union, types.UnionType):
        return _value(next(each for each in inner if each is not type(None)), name)
    if origin is tuple:
        return tuple(_value(each, name) for each in inner if each is not Ellipsis)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {_value(inner[0], f"{name}'s key"): _value(inner[1], name)}
    number = zlib.crc32(name.encode()) % 900 + 1
    plain = {str: name, int: number, float: number + 0.5, bool: True, bytes: b"\xff" + name.encode()}
    return plain.get(hint, name)
