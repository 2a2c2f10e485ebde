"""Drawings of notebooks in a real browser: they can be read on a light and on a dark system, whatever is below them."""

from pathlib import Path
from typing import Any

import pytest

import streamgauge
from tests.browser.driving import CONTRAST, faults, keep, resize, show
from tests.python.test_timelines import OPEN_AT_THE_LEFT, QUERY, STREAM

pytestmark = pytest.mark.browser

ON_PAPER = """const paper = document.querySelector('svg .paper'), sheet = paper.getBoundingClientRect()
document.body.style.background = getComputedStyle(paper).fill
const outside = [...document.querySelectorAll('svg text')].map(one => one.getBoundingClientRect()).filter(
  one => one.left < sheet.left || one.right > sheet.right || one.top < sheet.top || one.bottom > sheet.bottom)
return [outside.length, getComputedStyle(paper).fill]"""
"""Lays the paper of a drawing below all of the page; counts the texts that stand beside the paper."""


def test_a_drawing_is_readable_on_a_light_and_on_a_dark_system(browser: Any, tmp_path: Path) -> None:
    drawn = streamgauge.timeline(QUERY, STREAM, answers=OPEN_AT_THE_LEFT)
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>A notebook</title><body><main>'
    for name, part in (("cell", drawn._repr_html_()), ("drawing", drawn.svg)):
        (tmp_path / f"{name}.html").write_text(head + part, encoding="utf-8")
    show(browser, (tmp_path / "cell.html").as_uri(), 1440, "dark")
    assert browser.execute_script("return document.querySelector('img').naturalWidth") > 0
    assert faults(browser) == []
    keep(browser, "notebook-drawing")
    show(browser, (tmp_path / "drawing.html").as_uri(), 1440)
    papers = []
    for theme in ("light", "dark"):
        resize(browser, 1440, theme, 900)
        outside, paper = browser.execute_script(ON_PAPER)
        ratio, where = browser.execute_script(CONTRAST)
        assert outside == 0
        assert ratio >= 4.5, (theme, where)
        papers.append(paper)
    assert papers[0] != papers[1]
