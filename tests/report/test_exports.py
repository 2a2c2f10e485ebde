"""Plots as files inside a saved page: complete, valid, and never so many that the page grows beyond its bound."""

import re
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from streamgauge.report import document, exports
from streamgauge.report.plots import Figure
from streamgauge.report.series import series_of
from tests.report import build

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def labels_and_figures() -> tuple[list[str], list[Figure]]:
    series = series_of([build.right(), build.wrong()])
    return [one.label for one in series], [item for _, _, some in document.sections(series) for item in some]


KINDS = {"SVG": "image/svg+xml", "CSV": "text/csv"}


def content(link: exports.FigureLink) -> str:
    kind, _, text = link.href.partition(",")
    assert kind == f"data:{KINDS[link.word]};charset=utf-8"
    assert not set(text) & set('"<')
    return unquote(text.replace("&amp;", "&"))


def test_every_plot_gives_its_drawing_and_all_of_its_numbers(
    labels_and_figures: tuple[list[str], list[Figure]],
) -> None:
    labels, figures = labels_and_figures
    links = exports.inside(figures, labels, 10**6)
    for figure in figures:
        assert figure.numbers is not None
        drawing, numbers = links[figure.numbers.name]
        assert (drawing.word, numbers.word) == ("SVG", "CSV")
        assert content(numbers) == exports.table([figure.numbers.columns, *figure.numbers.every()])
        root = ElementTree.fromstring(content(drawing))
        assert root.findtext("{http://www.w3.org/2000/svg}title") == figure.message
        words = {item.text for item in root.iter("{http://www.w3.org/2000/svg}text")}
        assert len(figure.series) < 2 or {f"■ {labels[index]}" for index in figure.series} <= words
        assert not list(root.iter("{http://www.w3.org/2000/svg}a"))


@pytest.mark.parametrize("room", [0, 2_000, 30_000])
def test_files_inside_a_page_take_no_more_than_the_room(
    labels_and_figures: tuple[list[str], list[Figure]], room: int
) -> None:
    labels, figures = labels_and_figures
    result = exports.inside(figures, labels, room)
    taken = sum(len(link.href) for links in result.values() for link in links)
    assert taken <= room
    assert bool(result) == (room > 0)


def test_the_page_has_the_links_without_a_script() -> None:
    page = document.document([build.wrong()], "one")
    assert len(page) <= exports.PAGE
    assert re.search(r'<a href="data:image/svg\+xml[^"]*" download="delay.svg">SVG<', page)
    assert "<script" not in page
