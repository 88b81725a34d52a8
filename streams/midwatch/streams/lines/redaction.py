"""Removes secrets from log lines before anything leaves the node. Pure.

`suspects` searches a whole block cheaply for places of possible secrets. `redact` searches one line exactly.
Every line that `redact` changes holds one of the literals of `suspects`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ahocorasick_rs import BytesAhoCorasick, MatchKind

# Removed by their form: keys of AWS, Hugging Face, OpenAI, Weights & Biases, GitHub and GitLab. Removed by
# their place: credentials of an Authorization header, the password in a URL, the value of a named setting.
_NAMES = (
    *("api_key", "apikey", "access_key", "secret_key", "session_token", "access_token", "auth_token"),
    *("hub_token", "hf_token", "password", "passwd"),
)
_CAMEL = ("ApiKey", "apiKey", "AccessKey", "SecretKey", "SessionToken", "AccessToken", "Password")
_SETTINGS = tuple(n.encode() for n in (*_NAMES, *(n.upper() for n in _NAMES), *_CAMEL))
_HEADERS = (b"authorization", b"Authorization", b"AUTHORIZATION")
_PREFIXES = (
    b"AKIA",
    b"ASIA",
    b"hf_",
    b"sk-",
    b"wandb_v1_",
    b"ghp_",
    b"gho_",
    b"ghs_",
    b"github_pat_",
    b"glpat-",
)
_LITERALS = (*_PREFIXES, b"wandb login", b"://", *_HEADERS, *_SETTINGS)

# A token includes every character that could continue it. So the text after the mask never looks like another
# token, and redacting is idempotent.
_TOKEN = re.compile(
    rb"""(?<![A-Za-z0-9])(?:
        (?:AKIA|ASIA)[A-Z0-9]{16}
      | (?:hf_|wandb_v1_|ghp_|gho_|ghs_|github_pat_|glpat-)[A-Za-z0-9]{20}
      | sk-[A-Za-z0-9_-]{20}
    )[A-Za-z0-9_-]*""",
    re.VERBOSE,
)
_HEADER = re.compile(
    rb"((?:" + b"|".join(_HEADERS) + rb")[\"']?[ \t]*[:=][ \t]*[\"']?"
    rb"(?:(?:[Bb]earer|[Bb]asic|[Tt]oken|[Dd]igest)[ \t]+)?)"
    rb"(?!(?:[Bb]earer|[Bb]asic|[Tt]oken|[Dd]igest)[ \t])([A-Za-z0-9._~+/=-]+)"
)
_URL = re.compile(rb"(://[^\s/:@]*:)(?!\*{1,3}@)([^\s/@]+)(?=@)")
_SETTING = re.compile(
    rb"((?:" + b"|".join(_SETTINGS) + rb")[\"']?[ \t]*[=:][ \t]*[\"']?)([^\s\"',;&*][^\s\"',;&]{7,})"
)
_LOGIN = re.compile(rb"(wandb login(?:[ \t]+--?[\w-]+)*[ \t]+)([0-9a-f]{40})(?![0-9a-f])")

_scanner = BytesAhoCorasick(list(_LITERALS), matchkind=MatchKind.LeftmostFirst)


def suspects(block: bytes) -> Iterator[int]:
    """Ascending positions in the block on whose lines a secret may be. Mostly there are none."""
    return (start for _, start, _ in _scanner.find_matches_as_indexes(block))


def suspicious(line: bytes) -> bool:
    """Whether `redact` could change this line."""
    return bool(_scanner.find_matches_as_indexes(line))


def _masked(match: re.Match[bytes]) -> bytes:
    kept, secret = match.groups() if match.re.groups else (b"", match[0])
    # Never longer than the secret: a line's end must not move beyond its end in the file.
    return kept + b"***"[: len(secret)]


def redact(line: bytes) -> bytes:
    """The line with each secret replaced by `***`. It never grows, and redacting again changes nothing."""
    while True:
        before = line
        for pattern in (_TOKEN, _HEADER, _URL, _SETTING, _LOGIN):
            line = pattern.sub(_masked, line)
        if line == before:
            return line
