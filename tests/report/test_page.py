"""The page says what the verdicts say, escapes what engines say, stays small, and is sound HTML."""

import re
import time
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from streamgauge import report
from streamgauge.formats.run import read_run, read_shown, write_run
from streamgauge.model.verdict import Judgement
from tests.report import build

pytestmark = pytest.mark.slow

EVIL = '<script>alert("1")</script>'
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Outline(HTMLParser):
    """Checks that tags nest and close, and keeps ids, attributes and text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._seen(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert "svg" in self.open, f"<{tag}/> outside of SVG"
        self._seen(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += " ".join(data.split()) + " "

    def _seen(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id" and value]


def read(page: str) -> Outline:
    outline = Outline()
    outline.feed(page)
    outline.close()
    assert outline.open == []
    return outline


@pytest.fixture(scope="module")
def mixed() -> str:
    runs = [build.right(), build.wrong(), build.late(), build.failed(), build.unknown()]
    return report.page(runs, "Hot stations")


def test_the_verdict_comes_first_in_words(mixed: str) -> None:
    text = read(mixed).text
    assert "Of 5 runs, 1 is right, 1 is right but late, 2 are wrong and 1 is not judged (unknown)." in text
    assert text.index("Of 5 runs") < text.index("Summary ")
    assert "5 of 21 windows not as expected: precision 98.8%, recall 92.7%, 1 missed, 1 surplus." in text
    assert build.KILLED in text
    assert "over the limit of 4,000,000: raise it or use Spark." in text
    assert "the definition, window by window" in text
    assert "xsd:float relative 1e-5" in text


def test_every_part_is_there(mixed: str) -> None:
    text = read(mixed).text
    for part in (
        "Precision is below 100% in 22 of 81 reports",
        "Recall is below 100%",
        "Result size differs from the expected one",
        "Window size: 1,740 to 1,759 triples",
        "Delay: median",
        "Delay against result size",
        "Window borders: live as csparql",
        "Memory: at most",
        "CPU: at most",
        "Threads: at most",
        "Feeder: at most",
        "By arrival time",
        "C-SPARQL 0.9.7, documented and measured",
        "REGISTER RSTREAM",
        "1430236808",
    ):
        assert part in text, part


def test_wrong_rows_are_shown_with_the_count_of_the_rest(mixed: str) -> None:
    text = read(mixed).text
    assert "4 missing, 2 surplus rows" in text
    assert "<http://example.org/stations/S0>" not in text
    assert ":S0" in text
    assert "and 4 more" in text  # 11 missing, 7 witnesses kept


def test_it_is_sound_html_with_unique_ids_and_levels_of_headings(mixed: str) -> None:
    outline = read(mixed)
    assert len(outline.ids) == len(set(outline.ids))
    targets = {(attrs.get("href") or "")[1:] for tag, attrs in outline.tags if tag == "a"}
    labels = {attrs["aria-labelledby"] for _, attrs in outline.tags if attrs.get("aria-labelledby")}
    assert targets | labels <= set(outline.ids)
    levels = [int(tag[1]) for tag, _ in outline.tags if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_nothing_is_loaded_from_elsewhere_and_no_script_runs(mixed: str) -> None:
    outline = read(mixed)
    assert {tag for tag, _ in outline.tags}.isdisjoint({"script", "iframe", "object", "embed"})
    for _, attrs in outline.tags:
        for name, value in attrs.items():
            assert not name.startswith("on")
            if name in ("src", "href", "xlink:href", "srcset", "action"):
                assert (value or "").startswith(("#", "data:,"))
    style = "".join(re.findall(r"<style>(.*?)</style>", mixed, re.DOTALL))
    assert "@import" not in style
    assert "url(" not in style
    assert "default-src 'none'" in mixed


def test_tooltips_are_titles_in_the_plots(mixed: str) -> None:
    assert re.search(r"<title>csparql, window 7 \(35, 40\] s, wrong: precision 100%, recall 76.6%, ", mixed)


def test_what_engines_and_workloads_say_is_escaped() -> None:
    run, verdict = build.wrong(
        EVIL,
        failure=EVIL,
        query_text=EVIL,
        dialect=EVIL,
        workload={EVIL: EVIL},
        versions={EVIL: EVIL},
        machine={EVIL: EVIL},
        semantics=replace(build.CSPARQL, name=EVIL, sources={"report": EVIL}),
    )
    row = (f'"{EVIL}"', None)
    windows = [replace(one, missing=(row,), surplus=(row,)) if one.missing else one for one in verdict.windows]
    verdict = replace(verdict, windows=tuple(windows), tolerance=EVIL, reason=EVIL, variables=(EVIL, "b"))
    other = build.right(engine="</title></svg><b>")
    page = report.page([(run, verdict), other], EVIL)
    outline = read(page)
    assert "<script" not in page
    assert "<b>" not in page
    assert "b" not in {tag for tag, _ in outline.tags}
    assert EVIL in outline.text


def test_a_series_is_an_engine_under_a_semantics_and_repetitions_share_it() -> None:
    page = report.page(build.repetitions(10), "Repeated")
    text = read(page).text
    assert "Right in 10 of 10 repetitions" in text
    assert "Wrong in 9 of 10 repetitions" in text
    assert "csparql, repetition 10" in text
    assert "Recall over the repetitions" in text
    assert "Precision is 100% in every window of every repetition" in text
    assert "1, 2, 3, 4, 5, 6, 7, 8, 9, 10" in text  # the seeds


@pytest.fixture(scope="module")
def one() -> str:
    return report.page([build.right()], "One")


def test_one_run_has_no_legend_and_no_box_plots(one: str) -> None:
    assert 'class="legend"' not in one
    assert 'id="repetitions"' not in one
    assert "The run is right." in one


@pytest.mark.prove
def test_a_run_of_thirty_thousand_reports_stays_small_and_quick() -> None:
    began = time.process_time()
    page = report.page([build.large()], "Large")
    assert time.process_time() - began < 60
    assert len(page.encode()) < 5_000_000
    assert "200 of 30,000 reports listed: 200 of the 2,000 that are not right" in read(page).text
    assert "Of 30,000 reports, neighbours are drawn together: the line is their median" in page
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", page)
    assert {"1,000", "2,000", "25", "stream time, min"} <= set(labels)
    assert not [label for label in labels if re.search(r"\d[ek]", label)]


@pytest.mark.prove
def test_many_wrong_runs_stay_below_ten_megabytes() -> None:
    runs = [build.large(400, 300)] * 4 + [build.wrong(f"engine {n}") for n in range(30)]
    assert len(report.page(runs, "Many").encode()) < 10_000_000


def test_a_verdict_without_windows_still_makes_a_page() -> None:
    run, verdict = build.unknown()
    text = read(report.page([(run, verdict)], "Unknown")).text
    assert "The run is not judged (unknown)." in text
    assert "Precision is" not in text


def test_no_run_is_refused() -> None:
    with pytest.raises(ValueError, match="no run to report"):
        report.page([], "Nothing")


def test_the_same_runs_give_the_same_page_and_write_writes_it(one: str, tmp_path: Path) -> None:
    report.write([build.right()], tmp_path / "page.html", "One")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == one


def test_every_judgement_has_its_icon_beside_its_word(mixed: str) -> None:
    for judgement in Judgement:
        icon = {"right but late": "late"}.get(judgement.value, judgement.value)
        card = mixed.split(f'<article class="card {icon}">', 1)[1].split("</article>", 1)[0]
        assert f"<strong>{judgement.value.capitalize()}</strong>" in card


def test_it_needs_no_rows_of_answers(tmp_path):
    judged = [build.right(), build.wrong(), build.late()]
    for number, (run, _) in enumerate(judged):
        write_run(tmp_path / str(number), run)

    def page(read) -> str:
        stored = [
            (read(tmp_path / str(number), lambda _text, _dialect, run=run: run.header.query), verdict)
            for number, (run, verdict) in enumerate(judged)
        ]
        rows = [answer.added for run, _ in stored for answer in run.answers if answer.added]
        assert bool(rows) is (read is read_run)
        return report.page(stored, "runs")

    assert page(read_shown) == page(read_run)
