"""Texts in the direction that they have: by their base direction, else by their letters."""

import pytest

from streamgauge.model.terms import triple_term
from streamgauge.report.directions import directed
from streamgauge.report.windows import shortener
from streamgauge.servers.fragments.pages.formats import _cell
from streamgauge.workbench.rooms.playground.stream_text import Names
from streamgauge.workbench.terms import shown_term

SPA = '"ספא (x)"@he--rtl'
CLAIM = triple_term(("<urn:a>", "<urn:says>", SPA))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (SPA, '<bdi dir="rtl">&#34;ספא (x)&#34;</bdi>@he--rtl'),
        ('"lobby"@en--ltr', '<bdi dir="ltr">&#34;lobby&#34;</bdi>@en--ltr'),
        ('"ספא"', "<bdi>&#34;ספא&#34;</bdi>"),
        ("'ספא'@he--rtl 5", '<bdi dir="rtl">&#39;ספא&#39;</bdi>@he--rtl 5'),
        ('"a--rtl"@en <b>', "&#34;a--rtl&#34;@en &lt;b&gt;"),
        (f":a {CLAIM}", ":a &lt;&lt;( &lt;urn:a&gt; &lt;urn:says&gt; "),
    ],
)
def test_a_text_that_runs_from_right_to_left_is_set_apart(text, shown):
    assert directed(text).startswith(shown)


def test_a_triple_term_is_shown_by_its_parts():
    assert shown_term(CLAIM, (("", "urn:"),)) == f"<<( :a :says {SPA} )>>"
    assert shortener("PREFIX u: <urn:>")(CLAIM) == f"<<( u:a u:says {SPA} )>>"
    assert Names({"u": "urn:"}, ("urn:s",)).shown(CLAIM) == f"<<( a says {SPA} )>>"


def test_a_cell_of_fragments_has_the_whole_term_as_its_link():
    cell = _cell("/d", "object", CLAIM)
    assert 'href="/d?object=%3C%3C%28+%3Curn%3Aa%3E' in cell
    assert "<i>&lt;&lt;(</i>" in cell
    assert '<bdi dir="rtl">&#34;ספא (x)&#34;</bdi><i>@he--rtl</i>' in cell
    assert '<bdi dir="auto">&#34;ספא&#34;</bdi>' in _cell("/d", "object", '"ספא"')
