"""The report in a real browser: opens from a file without network, on desk and phone, by day and by night."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from streamgauge import report
from streamgauge.cli.main import app
from streamgauge.report import capacity, implementation_report
from streamgauge.suites.experiments.capacity import Bound
from tests.browser.driving import (
    CONTRAST,
    asked,
    complaints,
    faults,
    keep,
    records,
    resize,
    show,
    texts,
    without_network,
)
from tests.report import build
from tests.report.test_capacity import GREATER, NOISY, found, searched
from tests.report.test_headings import REPORT, RUN, agrees, judged
from tests.report.test_implementation_report import AT, made
from tests.report.test_loads import RUNS
from tests.workbench.runs.folders import keep as store

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser(browser: Any) -> Iterator[Any]:
    with without_network(browser):
        yield browser


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    runs = [build.right(), build.wrong(), build.late(), build.failed(), build.unknown(), *build.repetitions(3)]
    runs.append(build.fitted())
    report.write(runs, path, "A_rather_long_title_that_nobody_broke_into_words_and_that_a_phone_must_break")
    return Path(path).as_uri()


def test_it_opens_without_network_and_without_complaints(browser: Any, address: str) -> None:
    show(browser, address)
    assert "5 of 21 windows not as expected" in browser.find_element("css selector", "#verdict").text
    assert browser.find_element("css selector", ".headline").is_displayed()
    assert complaints(browser) == []
    requests = asked(browser)
    assert requests
    assert not [one for one in requests if '"url":"http' in one]


@pytest.mark.parametrize(("width", "shown"), [(390, "narrow"), (1280, "wide")])
def test_it_is_readable_on_desk_and_phone_by_day_and_by_night(
    browser: Any, address: str, width: int, shown: str
) -> None:
    """Nothing sticks out even when all is open, plots are drawn for the screen, every text stands out."""
    show(browser, address, width)
    plots = browser.find_elements("css selector", ".plot")
    visible = {plot.get_attribute("class") for plot in plots if plot.is_displayed()}
    assert visible == {f"plot {shown}"}
    small = """return Math.min(...[...document.querySelectorAll('.plot text')]
      .map(e => e.getBoundingClientRect().height).filter(h => h))"""
    assert browser.execute_script(small) >= 10
    browser.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    assert wide <= width
    boxes = (
        "return [...document.querySelectorAll('.scroll,figure,.card,h1,pre')].map(e => e.getBoundingClientRect().right)"
    )
    assert max(browser.execute_script(boxes)) <= width
    for theme in ("light", "dark"):
        resize(browser, width, theme, 900)
        ratio, where = browser.execute_script(CONTRAST)
        assert ratio >= 4.5, (theme, where)


def test_dark_and_light_differ_in_page_and_plots_and_print_is_on_white(browser: Any, address: str) -> None:
    look = """const plot = document.querySelector('.plot.wide [stroke="#0068b0"]')
    return [getComputedStyle(document.body).backgroundColor, getComputedStyle(plot).stroke]"""
    show(browser, address, theme="light")
    day = browser.execute_script(look)
    resize(browser, 1280, "dark", 900)
    night = browser.execute_script(look)
    assert day[0] == "rgb(246, 247, 249)"
    assert night[0] == "rgb(16, 19, 23)"
    assert day[1] != night[1]
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": features})
    look = "return [document.body, document.querySelector('.card')].map(e => getComputedStyle(e).backgroundColor)"
    assert browser.execute_script(look) == ["rgb(255, 255, 255)", "rgb(255, 255, 255)"]
    ratio, where = browser.execute_script(CONTRAST)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert ratio >= 4.5, where


def test_the_keyboard_skips_to_the_verdict_and_opens_the_rows(browser: Any, address: str) -> None:
    from selenium.webdriver.common.keys import Keys

    show(browser, address)
    browser.find_element("css selector", "body").send_keys(Keys.TAB)
    skip = browser.switch_to.active_element
    assert skip.get_attribute("class") == "skip"
    assert skip.rect["x"] >= 0
    skip.send_keys(Keys.ENTER)
    assert browser.switch_to.active_element.get_attribute("id") == "verdict"
    outer = browser.find_element("xpath", "//details[.//td][contains(summary, 'not right')]")
    _open_by_key(browser, outer, Keys.ENTER)
    inner = outer.find_element("css selector", "tr.rows details")
    assert not inner.find_element("css selector", ".witness").is_displayed()
    _open_by_key(browser, inner, Keys.SPACE)
    assert ":S0" in inner.find_element("css selector", ".witness").text


def _open_by_key(browser: Any, details: Any, key: str) -> None:
    from selenium.webdriver.common.keys import Keys

    target = details.find_element("css selector", "summary")
    for _ in range(200):
        if browser.switch_to.active_element == target:
            break
        browser.switch_to.active_element.send_keys(Keys.TAB)
    assert browser.switch_to.active_element == target, "the tab key does not reach it"
    target.send_keys(key)
    assert details.get_attribute("open") is not None


def test_borders_that_fit_best_are_drawn_against_the_expected_ones(browser: Any, address: str) -> None:
    show(browser, address)
    figure = browser.find_element("xpath", "//figure[contains(., 'Borders that fit best')]")
    plot = figure.find_element("css selector", ".plot.wide")
    assert plot.is_displayed()
    tips = [one.get_attribute("textContent") for one in plot.find_elements("css selector", "title")]
    assert any("expected [10, 15] s, fits best [11.1, 15.3] s" in tip for tip in tips)
    outlines, found = (
        plot.find_elements("css selector", f"path[fill-opacity='{share}']") for share in ("0.04", "0.75")
    )
    assert (len(outlines), len(found)) == (12, 11)


def _press(browser: Any, element: Any, key: str = "\ue007") -> None:
    """A key on an element that has the focus: Enter, unless another is given."""
    browser.execute_script("arguments[0].focus()", element)
    browser.switch_to.active_element.send_keys(key)


def test_a_red_border_opens_its_row_and_a_name_its_window(browser: Any, address: str) -> None:
    show(browser, address)
    bar = browser.find_element("css selector", '.plot.wide a[aria-label*="window 7 (35, 40] s, wrong"]')
    target = browser.find_element("id", bar.get_dom_attribute("href").partition("#")[2])
    assert not target.is_displayed()
    inside = """const [bar] = arguments; bar.scrollIntoView({ block: 'center', behavior: 'instant' })
    const { x, y, width, height } = bar.getBoundingClientRect()
    return document.elementFromPoint(x + width / 2, y + height / 2).closest('a') === bar"""
    assert browser.execute_script(inside, bar), "the sign in the middle of a bar takes the click"
    _press(browser, bar)
    assert target.is_displayed()
    assert "11 missing" in target.find_element("xpath", "./ancestor::td").text
    assert ":S0" in target.text
    name = target.find_element("xpath", "./ancestor::table//th/a[text()='window 4']")
    opened = browser.find_element("id", name.get_dom_attribute("href").partition("#")[2])
    assert not opened.is_displayed()
    _press(browser, name)
    assert "rows expected and received" in opened.text
    assert complaints(browser) == []


def test_the_timeline_is_zoomed_and_panned_without_script_or_server(browser: Any, address: str) -> None:
    show(browser, address)
    sizes = """const box = one => document.querySelector('#timeline ' + one).getBoundingClientRect()
    return [box('svg').width, box('.window rect').width, box('.window path').width, box('.report').width,
            box('.names span').left]"""
    before = browser.execute_script(sizes)
    _press(browser, browser.find_element("css selector", '#timeline [value="4"]'), " ")
    browser.execute_script("document.querySelector('#timeline .scroll').scrollLeft = 900")
    after = browser.execute_script(sizes)
    assert after == pytest.approx([4 * before[0], 4 * before[1], *before[2:]], abs=1.5)
    wrong = browser.find_element("css selector", "#timeline a.report.wrong[href]")
    target = browser.find_element("id", wrong.get_dom_attribute("href").partition("#")[2])
    assert not target.is_displayed()
    _press(browser, wrong)
    assert target.is_displayed()


def test_only_those_that_are_wrong_are_shown_without_a_script(browser: Any, address: str) -> None:
    show(browser, address)
    fold = browser.find_element("xpath", "//details[.//td][contains(summary, 'not right')][.//input]")
    _press(browser, fold.find_element("css selector", "summary"))
    rows = [row for row in fold.find_elements("css selector", "tbody > tr.right") if row.is_displayed()]
    assert rows
    _press(browser, fold.find_element("css selector", "input"), " ")
    assert not [row for row in rows if row.is_displayed()]
    assert fold.find_element("css selector", "tr.wrong").is_displayed()


@pytest.mark.prove
def test_runs_in_nested_folders_are_a_report_whose_values_stand_under_their_headings(
    browser: Any, tmp_path: Path
) -> None:
    """The delay over the pace has a mean with its interval over the repetitions at each point."""
    runs = {"deep/er/odd": judged()}
    for run, verdict in RUNS[:6]:
        place = f"paces/{run.header.factor:g}/{run.header.repetition}"
        runs[place] = replace(run, fed=(), samples=()), replace(verdict, windows=verdict.windows[:2])
    for name, run in runs.items():
        store(tmp_path / "all" / name, run)
    result = CliRunner().invoke(app, ["report", str(tmp_path / "all"), "--out", str(tmp_path / "all.html")])
    assert result.exit_code == 0, result.output
    show(browser, (tmp_path / "all.html").as_uri(), 1440)
    browser.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    rows = records(browser)
    agrees(next(row for row in rows if row.get("Median delay") == RUN["Median delay"]), RUN)
    agrees(next(row for row in rows if row.get("Undecided") == REPORT["Undecided"]), REPORT)
    figure = browser.find_element("xpath", "//figure[contains(., 'Delay over pace')]")
    tips = [one.get_attribute("textContent") for one in figure.find_elements("css selector", ".plot.wide title")]
    assert any("pace 4, 3 runs: mean 42 ms, 95% interval 39.5 ms to 44.5 ms" in tip for tip in tips), tips
    keep(browser, "report-loads")


def test_axe_finds_nothing_serious(browser: Any, tmp_path: Path) -> None:
    report.write([build.wrong()], tmp_path / "one.html", "One run")
    show(browser, (tmp_path / "one.html").as_uri())
    browser.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    assert faults(browser) == []
    keep(browser, "report")


def test_a_certificate_is_readable_on_a_phone_and_can_be_filtered(browser: Any, tmp_path: Path) -> None:
    implementation_report.write(made(12), tmp_path / "certificate.html", AT)
    show(browser, (tmp_path / "certificate.html").as_uri(), 390)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    rows = browser.find_elements("css selector", "tr.whole")
    _press(browser, browser.find_element("css selector", ".only input"), " ")
    assert not [row for row in rows if row.is_displayed()]
    assert browser.find_element("css selector", "a.bad").is_displayed()
    assert faults(browser) == []
    assert browser.get_log("browser") == []
    keep(browser, "certificate")


def test_the_page_of_capacities_is_readable(browser: Any, tmp_path: Path) -> None:
    carried, one = found(GREATER, Bound.DELAY)
    carried = replace(carried, found=[one, searched(NOISY, 57, 59)])
    (tmp_path / "capacity.html").write_text(capacity.page(carried), encoding="utf-8")
    show(browser, (tmp_path / "capacity.html").as_uri(), 390)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    bounded, refused = texts(browser, ".card")
    assert "pace at most 40 times real time: 4,000 triples/s" in bounded
    assert "no figure: pace 57 was carried" in refused
    assert "at the harder 62 it was right and in time" in refused
    row = next(row for row in records(browser) if row["outcome"] == "not carried")
    assert (row["pace, times real time"], row["right"], row["slowest window's p99"]) == ("80", "6 of 8", "2.04 s")
    ratio, where = browser.execute_script(CONTRAST)
    assert ratio >= 4.5, where
    assert faults(browser) == []
    keep(browser, "capacity")
