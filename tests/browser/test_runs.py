"""The room of runs in a browser: an experiment is started, watched, stopped, resumed; two of its runs are compared."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.browser.driving import CONTRAST, complaints, faults, keep, resize, show, text, texts
from tests.report import build
from tests.workbench.runs.folders import EXPERIMENT
from tests.workbench.runs.folders import keep as store
from tests.workbench.serving import opened

pytestmark = pytest.mark.browser

WAIT_S = 300


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A workbench over an experiment of two runs, 6 s each."""
    folder = tmp_path_factory.mktemp("bench")
    (folder / "heat.toml").write_text(EXPERIMENT.replace("[1, 2]", "[1]").replace('"real time"', "5"))
    with opened(folder) as bench:
        yield bench


def wait_for(browser: Any, seen: Callable[[], Any], what: str) -> Any:
    from selenium.common.exceptions import WebDriverException

    end = time.monotonic() + WAIT_S
    while True:
        with suppress(WebDriverException):  # between two pages
            if result := seen():
                return result
        assert time.monotonic() < end, f"{what} did not come: {text_of(browser, 'main')}"
        time.sleep(0.2)


def text_of(browser: Any, selector: str) -> str:
    return str(browser.execute_script(f"return document.querySelector({selector!r})?.innerText ?? ''"))


def press(browser: Any, value: str) -> None:
    """Press a form's button by the keyboard."""
    from selenium.webdriver.common.keys import Keys

    browser.find_element("css selector", f"button[value={value}]").send_keys(Keys.ENTER)


def look(browser: Any, name: str) -> None:
    """Check the page that is open on a desk by day and on a phone by night; keep pictures where they are asked for."""
    for width, theme in ((1440, "light"), (390, "dark")):
        resize(browser, width, theme, 1200)
        assert browser.execute_script("return document.documentElement.scrollWidth - innerWidth") <= 0, (name, width)
        ratio, where = browser.execute_script(CONTRAST)
        assert ratio >= 4.5, (name, theme, where)
    assert faults(browser) == [], name
    keep(browser, name)


def judged_when_asked(browser: Any, bench: Any) -> None:
    """A run without a verdict is judged by a button."""
    run = bench.folder / "runs" / "heat" / "live-csparql-seed1-1"
    browser.get("about:blank")  # the comparison that is open draws its timeline again when its width changes
    (run / "verdict.json").unlink()
    show(browser, f"{bench.url}/runs/run/runs/heat/live-csparql-seed1-1")
    assert "Not judged yet" in text_of(browser, "main")
    press(browser, "start")
    wait_for(browser, lambda: text_of(browser, ".judgement") == "Right", "the verdict")
    assert (run / "verdict.json").is_file()
    look(browser, "runs-run")
    assert browser.find_element("link text", "Open the report").is_displayed()
    assert [entry for entry in complaints(browser) if entry["level"] == "SEVERE"] == []


def report_is_drawn_when_seen(browser: Any) -> None:
    """A plot of the report is drawn once it comes into view, and given as a file."""
    left = "return document.querySelectorAll('.plot.later').length"
    browser.execute_script("document.querySelector('#delay').scrollIntoView()")
    wait_for(browser, lambda: browser.execute_script("return !!document.querySelector('#delay svg.plot')"), "a plot")
    assert browser.execute_script(left) > 0
    files = browser.find_elements("css selector", "#delay figure:first-child .files a")
    assert [file.get_dom_attribute("download") for file in files] == [
        "delay.svg",
        "delay.png",
        "delay.pdf",
        "delay.csv",
        "delay.tex",
    ]
    look(browser, "runs-report")


def many_at_once(browser: Any, bench: Any) -> None:
    """Three runs as a matrix whose cell leads to a run, which the search finds too; by keys alone."""
    from selenium.webdriver.common.keys import Keys

    browser.find_element("xpath", "//button[text()='As a matrix']").send_keys(Keys.ENTER)
    wait_for(browser, lambda: text_of(browser, "h1") == "3 runs as a matrix", "the matrix")
    look(browser, "runs-matrix")
    browser.find_element("css selector", ".matrix td a").send_keys(Keys.ENTER)
    wait_for(browser, lambda: "late" in text_of(browser, ".crumbs") or text_of(browser, ".judgement"), "a run")
    assert "Register this query live" in text_of(browser, "#related")
    browser.find_element("link text", "All runs of this query as a matrix").send_keys(Keys.ENTER)
    wait_for(browser, lambda: text_of(browser, "h1") == "3 runs as a matrix", "the runs of the query")
    browser.find_element("link text", "2 of 2 right").send_keys(Keys.ENTER)
    wait_for(browser, lambda: text_of(browser, "h1") == "Two runs compared", "the comparison of a cell")
    browser.find_element("css selector", ".search input").send_keys("wrong", Keys.ENTER)
    wait_for(browser, lambda: "about “wrong”" in text_of(browser, "h1"), "the search")
    assert "runs/wrong" in text_of(browser, "main")
    look(browser, "search")
    show(browser, f"{bench.url}/runs/")


def test_an_empty_folder_says_how_to_begin_and_the_list_follows_the_folder(
    browser: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with opened(tmp_path_factory.mktemp("empty")) as bench:
        show(browser, f"{bench.url}/runs/")
        look(browser, "runs-empty")
        show(browser, f"{bench.url}/")
        browser.find_element("xpath", "//button[text()='Write an example']").click()
        wait_for(browser, lambda: "parking" in text_of(browser, "h1"), "the experiment")
        assert text(browser, "button.first") == "Start"
        assert texts(browser, "pre + pre, .copy")[0] == "Copy"
        show(browser, f"{bench.url}/runs/")
        store(bench.folder / "runs" / "wrong", build.wrong())
        wait_for(browser, lambda: "1 run" in text_of(browser, "#count"), "the run")
        store(bench.folder / "runs" / "a-run-with-a-long-name-of-an-engine-and-a-seed", build.right(engine="spark"))
        browser.find_element("css selector", "input[name=run]").click()
        wait_for(browser, lambda: "2 runs" in text_of(browser, "#count"), "the second run")
        marked = "return [...document.querySelectorAll('input[name=run]')].filter(each => each.checked).length"
        assert browser.execute_script(marked) == 1
        assert text(browser, "#compare button") == "Mark two runs to compare them"
        shown = """const [table, last] = ['#list-scroll', '#list td:last-child'].map(one => document.querySelector(one))
            return table.getBoundingClientRect().right - last.getBoundingClientRect().right"""
        resize(browser, 1440, "light", 900)
        assert browser.execute_script(shown) >= 0, "the time of recording is cut off"
        look(browser, "runs-two")
        show(
            browser, f"{bench.url}/runs/compare?run=runs/wrong&run=runs/a-run-with-a-long-name-of-an-engine-and-a-seed"
        )
        headings = "return [...document.querySelectorAll('#timeline .windows .heading')].map(each => each.textContent)"
        assert browser.execute_script(headings) == ["Windows of A", "Windows of B"]
        look(browser, "runs-compared-timeline")
        show(browser, f"{bench.url}/runs/")
        store(bench.folder / "runs" / "late", build.late())
        wait_for(browser, lambda: "3 runs" in text_of(browser, "#count"), "the third run")
        many_at_once(browser, bench)
        show(browser, f"{bench.url}/runs/compare?run=runs/wrong")
        assert "Mark two runs to compare them" in text_of(browser, "[role=alert]")
        assert browser.execute_script(marked) == 1
        for box in browser.find_elements("css selector", "input[name=run]:not(:checked)"):
            box.click()
        assert text(browser, "#compare button") == "Report on the 3 marked runs"
        browser.find_element("css selector", "#compare button").click()
        wait_for(browser, lambda: "3 runs" in text_of(browser, "h1"), "the report")
        browser.execute_script("document.querySelector('#delay').scrollIntoView()")
        seen = "return !!document.querySelector('#delay svg.plot')"
        wait_for(browser, lambda: browser.execute_script(seen), "a plot")


def fill(browser: Any, name: str, text: str) -> None:
    """Replace the text of a field by keys."""
    from selenium.webdriver.common.keys import Keys

    browser.find_element("name", name).send_keys(Keys.CONTROL, "a")
    browser.find_element("name", name).send_keys(text)


def test_an_experiment_over_two_loads_is_made_by_the_form_and_its_figure_kept(
    browser: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    complaints(browser)
    with opened(tmp_path_factory.mktemp("made")) as bench:
        show(browser, f"{bench.url}/runs/new", 1440)
        look(browser, "runs-form")
        fill(browser, "name", "loads")
        fill(browser, "workload.weather.duration", "soon")
        press(browser, "add-sweep")
        wait_for(browser, lambda: browser.find_elements("name", "sweep.0.key"), "the sweep")
        fill(browser, "sweep.0.key", "workload.stations")
        fill(browser, "sweep.0.values", "2, 4")
        press(browser, "save")
        wrong = wait_for(browser, lambda: text_of(browser, "[id='workload.weather.duration-wrong']"), "what is wrong")
        assert "'soon': expected a duration" in wrong
        assert not list(bench.folder.iterdir())
        look(browser, "runs-form-wrong")
        assert [entry for entry in complaints(browser) if "status of 400" not in entry["message"]] == []
        fill(browser, "workload.weather.duration", "20s")
        press(browser, "save")
        wait_for(browser, lambda: text_of(browser, "h1") == "loads", "the experiment")
        assert "Stations\n2, 4" in text_of(browser, "main")
        press(browser, "start")
        wait_for(browser, lambda: "2 of 2 runs done" in text_of(browser, "main"), "both runs")
        wait_for(browser, lambda: browser.find_elements("link text", "Edit in a form"), "the end")
        browser.find_element("link text", "Open the report of 2 runs").click()
        wait_for(browser, lambda: "Delay over stations" in text_of(browser, "#load"), "the figure")
        browser.execute_script("document.querySelector('#load').scrollIntoView()")
        wait_for(browser, lambda: browser.find_elements("css selector", "#load svg.plot"), "the drawing")
        files = browser.find_elements("css selector", "#load figure:first-child .files a")
        assert [file.get_dom_attribute("download") for file in files] == [
            f"delay-over-stations.{kind}" for kind in ("svg", "png", "pdf", "csv", "tex")
        ]
        assert [one.get_dom_attribute("download") for one in browser.find_elements("css selector", "#summary .files a")
                ] == ["runs.csv", "runs.tex"]  # fmt: skip
        show(browser, f"{bench.url}/runs/edit/loads.toml", 1440)
        assert browser.find_element("name", "sweep.0.values").get_attribute("value") == "2, 4"
        press(browser, "remove-sweep-0")
        wait_for(browser, lambda: not browser.find_elements("name", "sweep.0.key"), "no sweep")
        press(browser, "add-query")
        wait_for(browser, lambda: browser.find_elements("name", "query.1.name"), "the second query")
        fill(browser, "query.1.name", "count-by-sensor")
        fill(browser, "query.1.parameters", 'WSIZE = "10s"\nWSLIDE = "5s"')
        press(browser, "save")
        wait_for(browser, lambda: "0 of 2 runs done" in text_of(browser, "main"), "the changed experiment")
        written = (bench.folder / "loads.toml").read_text()
        assert ("sweep" in written, written.count("[[query]]")) == (False, 2)


NOTED = """window.noted = []
const job = document.getElementById('job'), said = one => job.querySelector(one)?.innerText
const note = () => { if (said('h3')) noted.push([said('h3'), said('.figures-now dd')]) }
new MutationObserver(note).observe(job, { childList: true }); note()"""
"""Notes the name of the run that goes on, and how many of its windows are judged, whenever that is drawn."""


@pytest.mark.heavy("an experiment is started, stopped and resumed in real time")
def test_an_experiment_is_started_watched_stopped_resumed_and_compared(browser: Any, bench: Any) -> None:
    complaints(browser)  # tests share the log, which has the status of a refusal before
    show(browser, f"{bench.url}/runs/")
    browser.find_element("link text", "heat").click()
    assert "2 runs of 6 s each, fed at 5 times real time" in text_of(browser, "main")
    press(browser, "start")
    first = wait_for(browser, lambda: text_of(browser, "#job .figures-now"), "the first run")
    assert "Precision so far" in first
    browser.execute_script(NOTED)
    wait_for(browser, lambda: "100%" in text_of(browser, "#job .figures-now"), "precision so far")
    wait_for(browser, lambda: "MiB" in text_of(browser, "#job .figures-now"), "memory")
    wait_for(browser, lambda: "live-cqels-seed1-1" in text_of(browser, "#job h3"), "the second run")
    wait_for(browser, lambda: "1 of 2 runs done" in text_of(browser, "#plan"), "the first run in the table")
    windows = dict[str, list[int]]()
    for trial, count in browser.execute_script("return noted"):
        windows.setdefault(trial, []).append(int(count) if count.isdecimal() else 0)
    assert windows["live-cqels-seed1-1"][0] < max(windows["live-csparql-seed1-1"]), "the figures of the run before"
    press(browser, "stop")
    assert "100%" not in text_of(browser, "#job .bar-line")
    wait_for(browser, lambda: "Stopped; finished runs are kept (1 by now)" in text_of(browser, "main"), "the end")
    assert "1 of 2 runs done" in text_of(browser, "main")
    assert text(browser, "button.first") == "Resume"
    look(browser, "runs-stopped")
    press(browser, "start")
    wait_for(browser, lambda: text_of(browser, "#job .figures-now"), "the second run again")
    look(browser, "runs-watched")
    wait_for(browser, lambda: "2 of 2 runs done" in text_of(browser, "main"), "the end of the second run")
    wait_for(browser, lambda: "All runs are done" in text_of(browser, "main"), "the report")
    assert texts(browser, "td.verdict") == ["right", "right"]
    browser.find_element("link text", "Open the report of 2 runs").click()
    assert "runs are right" in text_of(browser, ".headline")
    report_is_drawn_when_seen(browser)
    show(browser, f"{bench.url}/runs/")
    boxes = browser.find_elements("css selector", "input[type=checkbox]")
    for box in boxes:
        box.click()
    look(browser, "runs-list")
    browser.find_element("css selector", "form#compare button").click()
    asked = wait_for(browser, lambda: text_of(browser, "section[aria-labelledby=asked-h]"), "the comparison")
    assert "semantics name" in asked
    assert "workload" not in asked
    assert "windows differ" in text_of(browser, "section[aria-labelledby=windows-h]")
    look(browser, "runs-compared")
    judged_when_asked(browser, bench)
