"""Ed25519 signatures of commands and specs. The shell part is two small files in the state directory.

`signing.key` (mode 0600) signs: decide signs commands with it, and `midwatch run` signs specs.
`signing.pub` verifies. The signed bytes are the record's kind and the canonical bytes of every other
field. A signature of one kind therefore never passes for the other kind.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
import stat
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from midwatch.streams.errors import ConfigurationError
from midwatch.streams.host.atomic_file import create_if_absent
from midwatch.streams.records import Command, Spec
from midwatch.streams.records.codec import canonical

PRIVATE_NAME = "signing.key"
PUBLIC_NAME = "signing.pub"

_KEY_BYTES = 32

Signed = TypeVar("Signed", Command, Spec)


@dataclass(frozen=True, slots=True)
class Verifier:
    """The public key: checks whether this installation's private key signed a record."""

    key: Ed25519PublicKey

    def accepts(self, record: Command | Spec) -> bool:
        """False for a missing, broken or foreign signature. Never raises, whatever a stranger sends."""
        try:
            self.key.verify(base64.b64decode(record.signature, validate=True), _message(record))
        except (InvalidSignature, binascii.Error, ValueError):
            return False
        return True


@dataclass(frozen=True, slots=True)
class Signer:
    """The private key. Its repr does not show the key's bytes."""

    key: Ed25519PrivateKey

    def sign(self, record: Signed) -> Signed:
        """The same record with its signature."""
        signature = base64.b64encode(self.key.sign(_message(record))).decode()
        return replace(record, signature=signature)

    def verifier(self) -> Verifier:
        return Verifier(self.key.public_key())


def spec_hash(spec: Spec) -> str:
    """The hash by which commands and spec events name a spec: SHA-256 in hex, without the signature."""
    return hashlib.sha256(canonical(spec)).hexdigest()


def new_signer() -> Signer:
    """A signer with a new key, which no file holds."""
    return Signer(Ed25519PrivateKey.generate())


def ensure_keys(state_directory: Path) -> Signer:
    """The installation's signer. Creates each of the two files if absent.

    Two processes may call this at once: both get the same key.

    Raises:
        ConfigurationError: the private file is broken or readable by others.
    """
    state_directory.mkdir(parents=True, exist_ok=True)
    private = state_directory / PRIVATE_NAME
    if not private.exists():
        create_if_absent(private, secrets.token_bytes(_KEY_BYTES), mode=0o600)
    signer = load_signer(state_directory)
    public = state_directory / PUBLIC_NAME
    raw = signer.key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    if not public.exists():
        create_if_absent(public, raw, mode=0o644)
    if _read(public) != raw:
        raise ConfigurationError(
            "the public key does not belong to the private key beside it",
            where=str(public),
            remedy="delete this file; the next start writes the right one",
        )
    return signer


def load_signer(state_directory: Path) -> Signer:
    """The private key of this installation.

    Raises:
        ConfigurationError: missing, broken, or readable by others than its owner.
    """
    path = state_directory / PRIVATE_NAME
    raw = _read(path)
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise ConfigurationError(
            "other users can read the private signing key",
            where=str(path),
            remedy=f"chmod 600 {path}",
        )
    return Signer(Ed25519PrivateKey.from_private_bytes(raw))


def load_verifier(state_directory: Path) -> Verifier:
    """The public key of this installation. Does not read the private key.

    Raises:
        ConfigurationError: missing or broken.
    """
    return Verifier(Ed25519PublicKey.from_public_bytes(_read(state_directory / PUBLIC_NAME)))


def _message(record: Command | Spec) -> bytes:
    return type(record).__name__.encode() + b"\n" + canonical(record)


def _read(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"the signing key cannot be read: {error.strerror}",
            where=str(path),
            remedy="start `midwatch up` once, which makes the keys, or copy them here",
        ) from error
    if len(raw) != _KEY_BYTES:
        raise ConfigurationError(
            f"not a signing key: {len(raw)} bytes, but a key has {_KEY_BYTES}",
            where=str(path),
            remedy="delete both key files, then write every spec again that the lost key signed",
        )
    return raw
