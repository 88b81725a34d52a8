"""A secret value. Code can use it, and nothing prints it."""

from __future__ import annotations


class Secret:
    """Text that prints as `***` in every form: repr, str, format, tracebacks, dataclass reprs.

    `reveal()` is the only way to the text. Call it only to pass the text to a client library.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str = "") -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "***" if self._text else "unset"

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        raise TypeError("a secret cannot be pickled, because pickling would store it as plain text")
