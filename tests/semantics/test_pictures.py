"""The pictures of the documentation are those that the code draws."""

from xml.etree import ElementTree

import pytest

from tests.semantics.pictures import FOLDER, PICTURES, WIDTH, picture

TEXT = "{http://www.w3.org/2000/svg}text"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_what_its_cases_give(name):
    assert (FOLDER / f"{name}.svg").read_text("utf-8") == picture(PICTURES[name]), (
        "run `python -m tests.semantics.pictures`"
    )


@pytest.mark.parametrize("name", PICTURES)
def test_no_text_leaves_a_picture(name):
    for text in ElementTree.fromstring(picture(PICTURES[name])).iter(TEXT):
        assert text.text
        assert "middle" in text.get("class", "") or float(text.attrib["x"]) + 7 * len(text.text) <= WIDTH, text.text


def test_no_other_picture_is_kept():
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(PICTURES)
