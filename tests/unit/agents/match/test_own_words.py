"""What a line says of itself is the same whether its form was met before or not."""

from __future__ import annotations

from random import Random

from midwatch.agents.match.hedges import only_mentions
from midwatch.agents.match.own_words import own_words
from midwatch.rules.loader import load_bundle
from midwatch.rules.matching.compiler import compile_rules
from midwatch.rules.model import Rule
from midwatch.rules.prefilter.workloads import WORKLOADS
from midwatch.streams.lines.log_levels import is_echo, is_quiet, stands_aside

HEADS = (b"", b"[rank3]: ", b"WARNING: ", b"if the node ", b"see `", b"W0302 11:05:40.1 7 x.py:3] ")
TAILS = (b"", b"` for help", b" [repeated 3x across cluster]", b", retrying in 5 s")


def test_remembered_words_are_those_of_the_line_itself() -> None:
    random = Random(1)
    rules = compile_rules(load_bundle("default").rules, scan=False)
    lines = WORKLOADS["storm"](60_000).split(b"\n")
    seen = 0
    for line in lines:
        spoken = random.choice(HEADS) + line + random.choice(TAILS)
        for hit in rules.match_line(spoken):
            words = own_words(hit)
            assert words == own_words(hit)
            assert bool(words.quiet) == is_quiet(spoken)
            assert (words.quiet == "beside") == (is_quiet(spoken) and stands_aside(spoken))
            assert bool(words.aside) == (is_echo(spoken) or only_mentions(hit))
            seen += bool(words.quiet or words.aside)
    assert seen > 100


def test_a_list_is_of_the_writer_of_its_first_line() -> None:
    rule = Rule(name="sizes", pattern="size mismatch for ")
    listed = b"\tsize mismatch for toy.wheel\n\tsize mismatch for toy.axle\n"

    def quiet(text: bytes) -> list[bool]:
        return [bool(own_words(hit).quiet) for hit in compile_rules([rule], scan=False).match_chunk(text)]

    assert quiet(b"(WARNING)[toys.py:77]  Errors in the toy:\n" + listed) == [True, True]
    assert quiet(b"ToyError: Errors in the toy:\n" + listed) == [False, False]
    assert quiet(listed) == [False, False]
    assert quiet(b"(WARNING)[toys.py:77]  Errors in the toy:\nsize mismatch for all\n") == [False]
