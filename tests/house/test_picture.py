"""The README's picture of the demo: it shows the transcript that stands beside it as text."""

from __future__ import annotations

from xml.etree import ElementTree

from bench.picture import PICTURE, README, block_of, kinds, picture

SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_shows_the_lines_of_the_readme() -> None:
    text = README.read_text()
    assert "(docs/demo.svg)" in text
    assert PICTURE.read_text() == picture(block_of(text)), "make picture"


def test_two_runs_may_see_different_lines_of_a_cascade_first_and_decide_the_same() -> None:
    first = "01:00 local:ada/toy: incident → suspected, attempt 1, nccl_timeout at logs/rank_3.log:8"
    other = "02:13 local:ada/toy: incident → suspected, attempt 1, communication at logs/rank_0.log:10"
    assert kinds([first]) == kinds([other])
    decided = "local:ada/toy: decided → restart, attempt 1 of 3, because {} is transient"
    assert kinds([decided.format("nccl_timeout")]) != kinds([decided.format("communication")])


def test_every_line_stands_within_the_picture() -> None:
    lines = ["a <b>  & c", "", "x" * 140]
    tree = ElementTree.fromstring(picture(lines))  # noqa: S314 - our own text
    texts = tree.findall(f"{SVG}text")
    shown = [(text.text or "").replace("\N{NO-BREAK SPACE}", " ") for text in texts]
    assert shown == ["$ make demo", "a <b>  & c", "x" * 140]
    for text in texts:
        assert float(text.attrib["x"]) + float(text.attrib["textLength"]) < float(tree.attrib["width"])
        assert float(text.attrib["y"]) < float(tree.attrib["height"])
