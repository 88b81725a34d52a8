"""The README's picture of the demo: it shows the transcript that stands beside it as text."""

from __future__ import annotations

from xml.etree import ElementTree

from bench.picture import PICTURE, README, block_of, picture

SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_shows_the_lines_of_the_readme() -> None:
    text = README.read_text()
    assert "(docs/demo.svg)" in text
    assert PICTURE.read_text() == picture(block_of(text)), "make picture"


def test_every_line_stands_within_the_picture() -> None:
    lines = ["a <b>  & c", "", "x" * 140]
    tree = ElementTree.fromstring(picture(lines))  # noqa: S314 - our own text
    texts = tree.findall(f"{SVG}text")
    shown = [(text.text or "").replace("\N{NO-BREAK SPACE}", " ") for text in texts]
    assert shown == ["$ make demo", "a <b>  & c", "x" * 140]
    for text in texts:
        assert float(text.attrib["x"]) + float(text.attrib["textLength"]) < float(tree.attrib["width"])
        assert float(text.attrib["y"]) < float(tree.attrib["height"])
