"""Bodies of many lines are read into columns, and hold what their lines hold one by one."""

import json
from itertools import chain

import pytest

from streamgauge.formats.batches import ElementBatch
from streamgauge.formats.streams import FormatError
from streamgauge.servers.queries.requests import TOGETHER, read_items

LITERAL = '"it is 5 \\"or\\" 6"'


def line(number, **fields):
    return json.dumps({"t": number * 10, "add": f'<urn:{number}> <urn:p> "{number % 3}" .\n'} | fields)


def read(text, time=None):
    return read_items(text.encode(), "application/x-ndjson", None, "urn:in", time, lambda: 0)


def plain(items):
    entry = chain.from_iterable(item.elements() if isinstance(item, ElementBatch) else (item,) for item in items)
    return [(item.time, getattr(item, "added", "advance")) for item in entry]


@pytest.mark.parametrize(
    ("more", "columns"),
    [
        ({}, True),
        ({"n": 7}, False),
        ({"add": ""}, True),
        ({"add": '<urn:a> <urn:p> "b" .'}, True),
        ({"add": f"<urn:a> <urn:p> {LITERAL} .\n<urn:a> <urn:q> <urn:b> .\n"}, True),
        ({"add": "<urn:a>  <urn:p>\t<urn:b>.\n"}, False),
        ({"t": 10**17}, True),
        ({"until": 10**6}, False),
        ({"advance": 1000, "add": "", "t": None}, True),
    ],
)
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_body_holds_what_its_lines_hold(more, columns, end):
    lines = [line(number) for number in range(100)]
    lines[50] = line(50, **more)
    items = read("\n".join(lines) + end)
    assert plain(items) == [entry for value in lines for entry in plain(read(value))]
    sizes = [len(item) for item in items if isinstance(item, ElementBatch)]
    assert (max(sizes, default=0) in range(1, TOGETHER + 1)) is columns


def test_a_body_has_the_time_of_its_request_where_lines_say_none():
    lines = [json.dumps({"add": f"<urn:{number}> <urn:p> <urn:o> ."}) for number in range(40)]
    items = read("\n".join(lines), "70")
    assert {time for time, _ in plain(items)} == {70}
    with pytest.raises(FormatError, match="field t is missing"):
        read("\n".join(lines))


def test_a_field_that_is_unknown_is_named():
    with pytest.raises(FormatError, match=r"line 31: .*field until_ is unknown"):
        read("\n".join([*map(line, range(30)), line(30, until_=4), *map(line, range(31, 60))]))
