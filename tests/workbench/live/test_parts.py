"""Parts of the room Live without a server: which column is drawn, ticks, thinning, rates, hosts that are asked."""

from random import Random

import pytest

from streamgauge.formats.lines import encode_answer
from streamgauge.model.answer import Answer
from streamgauge.servers.http.events import Numbered
from streamgauge.servers.queries.requests import RequestError
from streamgauge.workbench.addresses import HostRefusedError, check_host
from streamgauge.workbench.rooms.live import EXAMPLE, read_request
from streamgauge.workbench.rooms.live.chart import (
    ChartChoice,
    ChartError,
    chart,
    chosen_chart,
    drawing,
    nice_ticks,
    thinned,
)
from streamgauge.workbench.rooms.live.registrations import CountSample, RateMeter
from streamgauge.workbench.rooms.live.rows import newest_rows, number, read_answers
from streamgauge.workbench.terms import shown_cell, shown_term, shown_time

INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"


def answers(*given, columns=("s", "n"), removed=()):
    """Answers of rows (subject, number), one a second."""
    results = []
    for place, rows in enumerate(given, 1):
        added = tuple((f"<urn:{s}>", f'"{n}"{INTEGER}') for s, n in rows)
        line = encode_answer(Answer(columns, added, removed, instant=1000 * place)).rstrip(b"\n")
        results.append(Numbered(place, line, len(line)))
    return read_answers(results)


def numbered_at(instant, value):
    """An answer of one row, the sixth."""
    answer = Answer(("s", "n"), (("<urn:a>", f'"{value}"{INTEGER}'),), instant=instant)
    line = encode_answer(answer).rstrip(b"\n")
    return Numbered(6, line, len(line))


def test_the_first_column_of_numbers_is_drawn_with_a_line_for_each_of_few_values():
    drawn = chart(answers([("a", 1), ("b", 5)], [("a", 2), ("a", 4)]))
    assert (drawn.shown, drawn.by, drawn.timed) == ("?n", "?s", True)
    assert {line.name: line.points for line in drawn.lines} == {
        "<urn:a>": ((1000.0, 1.0), (2000.0, 3.0)),
        "<urn:b>": ((1000.0, 5.0),),
    }
    many = chart(answers([(f"s{n}", n) for n in range(8)]))
    assert (many.by, [line.points for line in many.lines]) == (None, [((1000.0, 3.5),)])
    chosen = chart(answers([(f"s{n}", n) for n in range(8)]), "?n", "?s")
    assert (len(chosen.lines), chosen.left_out) == (6, 2)


def test_without_numbers_rows_are_counted_also_those_that_are_taken_back():
    drawn = chart(answers([("a", 1)], [], removed=(("<urn:a>", f'"1"{INTEGER}'),)), "rows")
    assert [(line.name, [y for _, y in line.points]) for line in drawn.lines] == [
        ("rows", [1.0, 0.0]),
        ("rows taken back", [1.0, 1.0]),
    ]
    assert chart(answers([("a", 1)]), "?nothing").shown == "rows"
    assert drawing(chart([]), 100, 100, "wide") == ""


def test_values_at_a_threshold_are_counted_and_marked_in_the_time_range():
    every = answers(*([("a", n)] for n in (9, 1, 5, 7, 2)))
    drawn = chosen_chart(every, ChartChoice.of({"threshold": " 5 "}))
    assert drawn.sentence == "3 of 5 values at or above 5, the last at 4 s."
    assert drawn.beyond == [(1000.0, 9.0), (3000.0, 5.0), (4000.0, 7.0)]
    text = drawing(drawn, 300, 200, "wide")
    assert text.count('r="5"') == 3
    late = [*every, *read_answers([numbered_at(70_000, 6)])]
    assert chosen_chart(late, ChartChoice.of({"threshold": "6", "span": "1 minute"})).beyond == [(70_000.0, 6.0)]
    high = chosen_chart(every, ChartChoice.of({"threshold": "40"}))
    assert high.sentence == "0 of 5 values at or above 40."
    assert ">40<" in drawing(high, 300, 200, "wide")
    assert chosen_chart(every, ChartChoice.of({})).sentence == ""
    for field, text in (("threshold", "much"), ("threshold", "nan"), ("span", "a while")):
        with pytest.raises(ChartError, match=text):
            ChartChoice.of({field: text})


def test_names_of_lines_are_text_in_the_drawing():
    hostile = "<script>alert(1)</script>"
    drawn = chart(answers([(hostile.replace("<", "%3C"), 1)], columns=(hostile, "n")), "?n", f"?{hostile}")
    text = drawing(drawn, 300, 200, "wide")
    assert text.startswith('<svg class="plot wide"')
    assert "<script" not in text


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 0.0), (0.0, 7.0), (-3.0, 1e6), (0.0, 0.00021), (-5.0, -4.0), (1e300, 2e300)]
)
def test_ticks_are_few_round_and_span_the_values(low, high):
    ticks = nice_ticks(low, high)
    assert ticks[0] <= low <= high <= ticks[-1]
    assert 2 <= len(ticks) <= 7
    assert ticks == sorted(set(ticks))


def test_thinning_keeps_ends_and_extremes():
    random = Random(3)
    points = [(float(x), random.random()) for x in range(10_000)]
    kept = thinned(points, lambda point: int(point[0] / 100))
    assert len(kept) <= 400
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    for pick in (min, max):
        assert pick(kept, key=lambda entry: entry[1]) == pick(points, key=lambda entry: entry[1])


def test_rates_are_of_the_last_ten_seconds():
    meter = RateMeter(CountSample(0.0, 0, 0))
    assert meter.rates(CountSample(0.016, 31, 11)) == (31.0, 11.0)
    assert meter.rates(CountSample(2.0, 10, 1)) == (5.0, 0.5)
    for second in range(1, 31):
        meter.add(CountSample(float(second), 100 * min(second, 20), 0))
    elements, _ = meter.rates(CountSample(30.0, 2000, 0))
    assert elements == 0.0
    assert meter.rates(CountSample(30.0, 2100, 3)) == (10.0, 0.3)


def test_numbers_that_no_chart_can_show_are_none():
    double = "^^<http://www.w3.org/2001/XMLSchema#double>"
    given = [f'"{"9" * 400}"{INTEGER}', f'"1e308"{double}', f'"NaN"{double}', '"7"', "<urn:a>", f'"7"{INTEGER}', None]
    assert [number(term) for term in given] == [None, None, None, None, None, 7.0, None]


def test_rows_are_the_newest_and_terms_are_short():
    rows = newest_rows(answers(*([("a", n)] for n in range(300))), {"u": "urn:"})
    assert (len(rows), rows[0].number, rows[0].cells) == (200, 300, (("u:a", "<urn:a>"), ("299", "")))
    assert newest_rows(answers([]), {})[0].cells == ()
    decimal = '"23.456789012345678901"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    assert shown_cell(decimal) == ("23.4568", "23.456789012345678901")
    double = "^^<http://www.w3.org/2001/XMLSchema#double>"
    written = ("2.0E1", "1.5e-3", "1234567.891", "0.00001", "NaN")
    assert [shown_cell(f'"{item}"{double}').text for item in written] == [
        "20",
        "0.0015",
        "1234567.891",
        "0.00001",
        "NaN",
    ]
    assert shown_term('"text"@en') == "text @en"
    assert shown_term("<http://xmlns.com/foaf/0.1/name>") == "foaf:name"
    assert len(shown_term(f'"{"x" * 5000}"')) == 301
    assert [shown_time(item) for item in (None, 2500, 1_795_000_000_000, 10**18)] == [
        "",
        "2.5 s",
        "2026-11-18 11:06:40",
        "1,000,000,000,000,000,000 ms",
    ]


@pytest.mark.parametrize(
    ("host", "result", "why"),
    [
        ("a.example", ["93.184.216.34"], ""),
        ("localhost", ["127.0.0.1", "::1"], ""),
        ("192.168.1.7", ["192.168.1.7"], ""),
        ("fd00::7", ["fd00::7"], ""),
        ("rebound.example", ["93.184.216.34", "192.168.1.7"], "in a private network"),
        ("metadata.example", ["169.254.169.254"], "link-local"),
        ("169.254.169.254", ["169.254.169.254"], "link-local"),
        ("0.0.0.0", ["0.0.0.0"], "reserved"),
        ("224.0.0.1", ["224.0.0.1"], "reserved"),
        ("mapped.example", ["::ffff:169.254.169.254"], "link-local"),
        ("::ffff:169.254.169.254", ["::ffff:169.254.169.254"], "link-local"),
        ("64:ff9b::169.254.169.254", ["64:ff9b::a9fe:a9fe"], "link-local"),
        ("2002:a9fe:a9fe::1", ["2002:a9fe:a9fe::1"], "link-local"),
        ("::169.254.169.254", ["::a9fe:a9fe"], "link-local"),
        ("fd00:ec2::254", ["fd00:ec2::254"], "secrets"),
        ("fd20:ce::254", ["fd20:ce::254"], "secrets"),
        ("100.100.100.200", ["100.100.100.200"], "secrets"),
        ("site.example", ["fec0::1"], "private network"),
        ("2852039166", ["169.254.169.254"], "link-local"),
        ("zone.example", ["fe80::1%eth0"], "link-local"),
    ],
)
def test_a_host_is_public_or_this_machine_or_typed_as_an_address(host, result, why):
    if not why:
        check_host(host, lambda _: result)
        return
    with pytest.raises(HostRefusedError, match=why):
        check_host(host, lambda _: result)


@pytest.mark.parametrize("text", ["-1", "1.5", "9" * 16])
def test_a_lateness_is_whole_milliseconds_and_never_cut(text):
    assert read_request({"query": EXAMPLE, "lateness": "9" * 15}).lateness == 10**15 - 1
    with pytest.raises(RequestError, match=f"lateness is {text}: expected whole milliseconds"):
        read_request({"query": EXAMPLE, "lateness": text})
