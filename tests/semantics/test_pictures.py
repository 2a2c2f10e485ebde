"""The pictures of the documentation are those that the code draws."""

from itertools import pairwise
from xml.etree import ElementTree

import pytest

from streamgauge.suites.conformance.cases import load
from tests.semantics.pictures import DRAWN, FOLDER, PICTURES, WIDTH, Panel, picture

TEXT = "{http://www.w3.org/2000/svg}text"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_what_its_cases_give(name):
    assert (FOLDER / f"{name}.svg").read_text("utf-8") == picture(PICTURES[name]), (
        "run `python -m tests.semantics.pictures`"
    )


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_of_example_data_is_what_it_gives(name):
    assert (FOLDER / f"{name}.svg").read_text("utf-8") == DRAWN[name](), "run `python -m tests.semantics.pictures`"


@pytest.mark.parametrize("name", PICTURES)
def test_no_text_leaves_a_picture(name):
    for text in ElementTree.fromstring(picture(PICTURES[name])).iter(TEXT):
        assert text.text
        assert "middle" in text.get("class", "") or float(text.attrib["x"]) + 7 * len(text.text) <= WIDTH, text.text


@pytest.mark.slow
def test_every_conformance_case_has_a_picture_that_fits():
    """A letter is 6.6 pixels wide in the mean, and no label of the stream covers another."""
    for case in load():
        panel = Panel(case, 8)
        texts = [text for text in ElementTree.fromstring(picture([case.name])).iter(TEXT) if text.text]
        for text in texts:
            room = WIDTH if "middle" in text.get("class", "") else WIDTH - 6.6 * len(text.text or "")
            assert float(text.attrib["x"]) <= room, (case.name, text.text)
        stands = sorted((level, x, 3.3 * len(label)) for x, level, label in panel.labels)
        for (level, x, half), (other, far, wide) in pairwise(stands):
            assert level != other or x + half < far - wide, case.name
        assert len([text for text in texts if (text.text or "").startswith("at ")]) == len(panel.candidates)


def test_no_other_picture_is_kept():
    assert {path.stem for path in FOLDER.glob("*.svg")} == {*PICTURES, *DRAWN}
