"""Who may order: only the holder of the private key, and nobody after a byte was changed."""

from __future__ import annotations

import threading
from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import pytest

from midwatch.agents import signing
from midwatch.streams.errors import ConfigurationError
from midwatch.streams.records import Command, Spec
from midwatch.streams.records.codec import canonical, decode, encode

COMMAND = Command(
    id="c1",
    job="local:ann/r",
    attempt=1,
    seq=1,
    action="restart",
    incarnation="local:10:20",
    incident="i1",
    revision=2,
    reason="transient: nccl_timeout",
    not_before_ms=1,
    expires_ms=2,
    issuer="decide",
    spec="abc",
    bundle="def",
    parameters={"exclude": "n0", "step": 20},
)
SPEC = Spec(
    job="local:ann/r",
    cluster="local",
    argv=("python", "train.py"),
    cwd="/home/ann",
    environment={"A": "b"},
    user="ann",
    log_paths=("a.log",),
    checkpoint_directory="/ckpt",
    policy="verdict",
    armed=True,
    limits={"training": 30.0},
)


def test_a_signed_record_is_accepted_after_its_way_through_the_topic() -> None:
    signer = signing.new_signer()
    assert signer.verifier().accepts(decode(encode(signer.sign(COMMAND))))
    assert signer.verifier().accepts(decode(encode(signer.sign(SPEC))))


@pytest.mark.parametrize("changed", [{"attempt": 2}, {"expires_ms": 99}, {"parameters": {}}, {"spec": "x"}])
def test_a_changed_command_is_not_accepted(changed: dict[str, object]) -> None:
    signer = signing.new_signer()
    signed = replace(signer.sign(COMMAND), **changed)  # type: ignore[arg-type]  # any field may be forged
    assert not signer.verifier().accepts(signed)


@pytest.mark.parametrize("signature", ["", "!", "AAAA", "é"])
def test_a_broken_signature_is_refused_and_does_not_crash(signature: str) -> None:
    assert not signing.new_signer().verifier().accepts(replace(COMMAND, signature=signature))


@pytest.mark.parametrize("kind", [b"", b"Spec\n", b"Outcome\n"])
def test_a_signature_made_for_another_kind_of_record_is_not_accepted(kind: bytes) -> None:
    signer = signing.new_signer()
    signature = b64encode(signer.key.sign(kind + canonical(COMMAND))).decode()
    assert not signer.verifier().accepts(replace(COMMAND, signature=signature))


def test_a_stranger_cannot_sign() -> None:
    assert not signing.new_signer().verifier().accepts(signing.new_signer().sign(COMMAND))


def test_the_private_key_is_for_its_owner_only(tmp_path: Path) -> None:
    signing.ensure_keys(tmp_path)
    assert (tmp_path / signing.PRIVATE_NAME).stat().st_mode & 0o777 == 0o600
    (tmp_path / signing.PRIVATE_NAME).chmod(0o644)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        signing.load_signer(tmp_path)


def test_the_executor_verifies_without_the_private_key(tmp_path: Path) -> None:
    signed = signing.ensure_keys(tmp_path).sign(COMMAND)
    (tmp_path / signing.PRIVATE_NAME).unlink()
    assert signing.load_verifier(tmp_path).accepts(signed)


def test_starts_at_the_same_time_agree_on_one_key(tmp_path: Path) -> None:
    signers: list[signing.Signer] = []
    threads = [
        threading.Thread(target=lambda: signers.append(signing.ensure_keys(tmp_path))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({signer.sign(COMMAND).signature for signer in signers}) == 1
    assert len(signers) == 8


def test_a_missing_or_torn_key_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="midwatch up"):
        signing.load_verifier(tmp_path)
    (tmp_path / signing.PUBLIC_NAME).write_bytes(b"short")
    with pytest.raises(ConfigurationError, match="5 bytes, but a key has 32"):
        signing.load_verifier(tmp_path)
