"""A program that never began to train says last what it lacks, in words that no rule knows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midwatch.agents.replay.endings.closing_lacks import LACK, lack_at_end
from unit.agents.conftest import Watch

BEGUN = "Using the toy backend.\nthe shelf of 2016 is read\n"
STEPS = "".join(f"step {n} loss {3 - n / 50:.3f}\n" for n in range(1, 31))
LACKS = (
    "Sanded toys not available. Please run the sanding script first.",
    "Please run sand.py first",
    "You need to run sand.py before painting",
    "Toys not found. Please download toys.zip and unpack it here.",
    "Please provide --toy_dir",
    "TOY_SHELF is not set",
    "Toy folder shelves/red does not exist!",
    "No toy images found.",
    "0 samples to train on",
    "No GPU found, exiting",
    "No such toy: wheel",
    "Cannot register a toy that is there with a new colour",
    "Unable to locate the shelf",
    "Unsupported varnish matte",
    "Missing required colour: red",
    "Toy version mismatch: expected 2.1, got 1.9",
    "Invalid number of wheels: 3, expected: four",
    "the number of wheels must divide the number of toys",
    "toypaint 1.9 is too old",
    "The shelf of toys exists, use --overwrite",
    "Something went wrong!",
    "Toys could not be loaded.",
    "The shapes of wheels do not match",
    "Loaded 0 samples",
    "number of toy images: 0",
    "Only 4 GPUs visible, need 8",
    "This toy requires paint-7",
    "Please install paint from https://toys.example.org",
    "Another instance is already painting",
    "Login required",
    "\u8bf7\u5148\u8fd0\u884c sand.py",
    "\u627e\u4e0d\u5230\u73a9\u5177 wheel.bin",
    "Spielzeug nicht gefunden: rad.bin",
    "brinquedo n\u00e3o encontrado: roda.bin",
    "\u304a\u3082\u3061\u3083\u304c\u898b\u3064\u304b\u308a\u307e\u305b\u3093",
    "\uc7a5\ub09c\uac10\uc744 \ucc3e\uc744 \uc218 \uc5c6\uc2b5\ub2c8\ub2e4",
    "\u043a\u043e\u043b\u0435\u0441\u043e \u043d\u0435 \u043d\u0430\u0439\u0434\u0435\u043d\u043e",
    "Jouet introuvable : roue.bin",
    "no se encontr\u00f3 el juguete rueda.bin",
    "giocattolo non trovato: ruota.bin",
    "oyuncak bulunamad\u0131: teker.bin",
)


@pytest.mark.parametrize("line", LACKS)
def test_what_it_lacks_is_its_end(watch: Watch, line: str) -> None:
    done = watch(f"{BEGUN}{line}\n")
    assert (done.verdict.state, done.verdict.error_type, done.verdict.root_line) == ("failed", "config", line)
    assert (done.decision.action, done.decision.reason) == ("hold", LACK)


def test_a_server_that_does_not_answer_is_of_the_network(watch: Watch) -> None:
    assert watch(f"{BEGUN}The shelf of toys is not responding.\n").verdict.error_type == "communication"


@pytest.mark.parametrize("line", LACKS)
def test_the_same_words_elsewhere_end_nothing(watch: Watch, line: str) -> None:
    for text in (
        f"{BEGUN}{line}\nthe toys are painted\n",
        f"{STEPS}{line}\n",
        f"{BEGUN}all toys are saved\n{line}\n",
        f"{BEGUN}2026-03-02 11:52:40,123 - toys - WARNING - {line}\n",
    ):
        assert watch(text).verdict.state != "failed"


@pytest.mark.parametrize(
    "line",
    [
        "No errors found",
        "No broken toys found.",
        "No new images found",
        "Toys not found, downloading them",
        "No GPU found, using the CPU",
        "Cannot open the red shelf, skipping it",
        "Unknown colours are ignored",
        "Please provide the number of a shelf:",
        "a toy must be painted",
        "Cards that paint: 0",
        "This card paints on GPU: 0",
        "+ TOY_DATA=0",
        "My shelf is 0",
        "  - Input toys:         Not specified, as on the shelf",
        "Wrong wheels: 0.0%",
        "number of broken toy images: 0",
        "Total missing toy files: 0",
        "Invalid wheel: nan, painted_wheel: nan, shelf: nan",
        "Invalid wheel=7, wheels=nan, shelf=3",
        'raise ValueError("wheels must be an even number")',
        "If this is not wanted, please set TOY_PAINT=1",
        "Could not find red, but green is there",
        "unable to import 'toys.cloud', disabling it",
        '"error":{',
    ],
)
def test_what_it_gets_over_or_asks_for_is_no_end(watch: Watch, line: str) -> None:
    assert watch(f"{BEGUN}{line}\n").verdict.state != "failed"


@given(
    st.text(alphabet="a 0:=", max_size=240),
    st.sampled_from(["unknown ", "no ", "please run ", "cannot ", ""]),
)
def test_any_last_line_tells_of_a_lack_or_of_none(rest: str, begin: str) -> None:
    found = lack_at_end([(7, f"{begin}{rest}".encode())])
    assert found is None or found[0] == 7


def test_a_long_word_is_read_at_once() -> None:
    assert lack_at_end([(1, b"unknown " + b"a" * 220 + b"=")]) is None
