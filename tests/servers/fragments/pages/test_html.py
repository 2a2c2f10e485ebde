"""Pages of fragments for people: terms are text, and each quad says when it holds."""

import re

from streamgauge.servers.fragments.labels import Label, Style
from streamgauge.servers.http.replies import style
from tests.servers.fragments.pages.served import Server, address

XSD = "http://www.w3.org/2001/XMLSchema#"
LABEL = "<http://example.org/temporal#expiration>"


def rows(page):
    return [re.findall(r"<td data-label=\"(\w+)\">(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", page)[1:]]


def test_quads_of_one_graph_hold_as_its_label_says_others_until_they_end_and_the_rest_always():
    server = Server()
    quads = [(("<urn:a>", "<urn:p>", f'"{number}"', "<urn:g>"), 9_000_000) for number in range(3)]
    quads += [(("<urn:g>", LABEL, f'"1970-01-01T02:30:00Z"^^<{XSD}dateTime>', ""), 9_000_000)]
    quads += [(("<urn:b>", "<urn:p>", '"x"', "<urn:h>"), 5_000_000), (("<urn:b>", "<urn:p>", '"y"', "<urn:h>"), None)]
    server.dataset("data", [*quads, (("<urn:c>", "<urn:p>", '"z"', ""), None)])
    page = server.ask(address("data", predicate="urn:p"), accept="text/html").text
    texts = {re.sub("<.*?>", "", cells[2][1]): re.sub("<.*?>", "", cells[4][1]) for cells in rows(page)}
    assert texts == {
        **{f"&#34;{number}&#34;": "until 1970-01-01 02:30:00 UTC" for number in range(3)},
        "&#34;x&#34;": "until 1970-01-01 01:23:20 UTC",
        "&#34;y&#34;": "always",
        "&#34;z&#34;": "always",
    }
    assert page.count(style()) == 1


def test_intervals_are_read_and_a_label_that_is_no_time_says_nothing():
    server = Server()
    node, time = "<urn:node>", "http://example.org/temporal#"
    quads = [
        ("<urn:a>", "<urn:p>", '"1"', "<urn:g>"),
        ("<urn:g>", f"<{time}interval>", node, ""),
        (node, f"<{time}initial>", f'"1970-01-01T00:00:10Z"^^<{XSD}dateTime>', ""),
        (node, f"<{time}final>", f'"1970-01-01T01:00:00Z"^^<{XSD}dateTime>', ""),
        ("<urn:a>", "<urn:p>", '"2"', "<urn:h>"),
        ("<urn:h>", f"<{time}interval>", "<urn:other>", ""),
        ("<urn:other>", f"<{time}initial>", '"soon"', ""),
        ("<urn:other>", f"<{time}final>", '"late"', ""),
    ]
    made = server.dataset("data", [(quad, None) for quad in quads])
    made.style = Style(label=Label.INTERVAL)
    page = server.ask(address("data", predicate="urn:p"), accept="text/html").text
    assert [re.sub("<.*?>", "", cells[4][1]) for cells in rows(page)] == [
        "from 1970-01-01 00:00:10 UTC until 1970-01-01 01:00:00 UTC",
        "always",
    ]


def test_terms_are_text_in_cells_links_and_titles():
    server = Server()
    hostile = '"<script>alert(1)</script>\\" onmouseover=\\"x"'
    server.dataset("data", [(("<urn:a>", "<urn:p>", hostile, ""), None)])
    page = server.ask(address("data"), accept="text/html").text
    assert "<script" not in page
    assert '" onmouseover' not in page
    assert "&lt;script&gt;" in page
