"""HTTP caching tells the truth about time: lifetimes, validators, what a change elsewhere leaves alone."""

from email.utils import parsedate_to_datetime
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model.fact import Fact
from streamgauge.servers.fragments import writes
from streamgauge.servers.fragments.annotations import methods
from streamgauge.servers.fragments.labels import Label, Style
from streamgauge.servers.fragments.pages.dataset import SWEEP, DataSet
from streamgauge.servers.fragments.pages.http import application
from streamgauge.servers.fragments.pages.representations import SeenKeys
from streamgauge.servers.fragments.pages.selections import select
from streamgauge.servers.fragments.store.indexed import MemoryStore
from tests.servers.fragments.pages.served import BASE, E, Server, address, iri, read

S1, S2 = iri("s1"), iri("s2")


def server(end: int | None = None, **more: int) -> Server:
    server = Server()
    server.dataset("data", [((S1, iri("p"), '"a"', ""), end), ((S2, iri("p"), '"b"', ""), None)], **more)
    return server


@pytest.mark.parametrize(
    ("left", "control"),
    [
        (10_000, "max-age=10"),
        (10_999, "max-age=10"),
        (1_000, "max-age=1"),
        (999, "no-cache"),
        (0, "no-cache"),
        (-5, "no-cache"),
        (10**15, "max-age=31536000"),
    ],
)
def test_fresh_until_the_first_of_its_facts_ends(left, control):
    made = server(end=Server().now + left)
    assert made.ask(address("data")).headers["cache-control"] == control
    assert made.ask(address("data", subject="http://example.org/s2")).headers["cache-control"] == "no-cache"


def test_the_lifetime_runs_down_and_the_next_end_takes_over():
    made = server(end=1_010_000)
    made.datasets[0].change((), [((S2, iri("q"), '"c"', ""), 1_030_000)])
    app = application(made.datasets)
    for now, control in ((1_000_000, 10), (1_004_200, 5), (1_009_000, 1), (1_010_000, 20), (1_029_000, 1)):
        made.now = now
        for kind in ("application/trig", "text/html"):
            response = made.ask(address("data"), app=app, accept=kind)
            assert response.headers["cache-control"] == f"max-age={control}"
            assert parsedate_to_datetime(response.headers["date"]).timestamp() == now // 1000
            assert parsedate_to_datetime(response.headers["expires"]).timestamp() == now // 1000 + control
    made.now = 1_030_000
    assert made.ask(address("data"), app=app).headers["cache-control"] == "no-cache"
    assert "expires" not in made.ask(address("data"), app=app).headers


def test_the_page_for_people_says_when():
    made = server(end=1_010_000)
    made.datasets[0].change((), [((S2, iri("q"), '"c"', ""), 1_030_000)])
    app = application(made.datasets)
    assert "1970-01-01T00:16:50Z" in made.ask(address("data"), app=app, accept="text/html").text
    made.now = 1_010_000
    assert "1970-01-01T00:17:10Z" in made.ask(address("data"), app=app, accept="text/html").text


@pytest.mark.parametrize("name", methods())
def test_the_page_for_people_says_when_each_fact_holds(name):
    server = Server()
    style = Style(name, Label.INTERVAL, template=f"{BASE}/data{{?subject,predicate,object}}")
    data = DataSet("data", MemoryStore(), style, lambda: server.now, 100)
    server.datasets.append(data)
    writes.add(data, [Fact((iri("s"), iri("p"), '"a"'), 1_000_000, 1_010_000), Fact((iri("s"), iri("q"), '"b"'))])
    text = server.ask(address("data", subject=f"{E}s"), accept="text/html").text
    assert "always" in text
    whole = server.ask(address("data"), accept="text/html").text
    assert "until 1970-01-01 00:16:50 UTC" in whole
    asserted = name in ("graphs", "implicit", "reifiers")
    assert ("from 1970-01-01 00:16:40 UTC until 1970-01-01 00:16:50 UTC" in text) == asserted


def test_a_declared_period_where_no_end_is_known():
    made = server(end=1_002_000, period=60_500)
    assert made.ask(address("data", subject="http://example.org/s2")).headers["cache-control"] == "max-age=60"
    assert made.ask(address("data")).headers["cache-control"] == "max-age=2"


def test_not_modified():
    made = server(end=1_010_000)
    first = made.ask(address("data"))
    for sent in (first.headers["etag"], f'"other", {first.headers["etag"]}', f"W/{first.headers['etag']}", "*"):
        again = made.ask(address("data"), if_none_match=sent)
        assert (again.status_code, again.content) == (304, b"")
        for name in ("etag", "cache-control", "date", "vary", "dataset-version", "access-control-allow-origin"):
            assert again.headers[name] == first.headers[name]
        assert "content-length" not in again.headers
    assert made.ask(address("data"), if_none_match='"other"').status_code == 200


def test_each_representation_has_a_validator_of_its_own():
    made = server()
    tags = {
        made.ask(address("data"), accept=kind, accept_encoding=coding).headers["etag"]
        for kind in ("application/trig", "application/n-quads", "text/turtle", "application/ld+json", "text/html")
        for coding in ("identity", "gzip", "br")
    }
    assert len(tags) == 15


def test_a_change_elsewhere_leaves_the_validator():
    made = server()
    app, data = application(made.datasets), made.datasets[0]
    wanted, other = address("data", subject="http://example.org/s1"), address("data", subject="http://example.org/s2")
    before, before_other = made.ask(wanted, app=app), made.ask(other, app=app)
    made.now += 5_000
    data.change((), [((S2, iri("p"), '"c"', ""), None)])
    after = made.ask(wanted, app=app, if_none_match=before.headers["etag"])
    assert after.status_code == 304
    assert after.headers["dataset-version"] != before.headers["dataset-version"]
    assert "last-modified" not in before.headers
    assert after.headers["last-modified"] == "Thu, 01 Jan 1970 00:16:40 GMT"
    assert made.ask(other, app=app, if_none_match=before_other.headers["etag"]).status_code == 200


def test_a_change_and_its_opposite_give_the_validator_back():
    made = server()
    app, data, quad = application(made.datasets), made.datasets[0], (S1, iri("p"), '"z"', "")
    before = made.ask(address("data"), app=app).headers["etag"]
    data.change((), [(quad, None)])
    assert made.ask(address("data"), app=app).headers["etag"] != before
    data.change([quad], ())
    assert made.ask(address("data"), app=app).headers["etag"] == before
    assert made.ask(address("data"), app=application(made.datasets)).headers["etag"] == before


def test_a_new_end_of_a_fact_that_is_there():
    made = server(end=1_010_000)
    app = application(made.datasets)
    first = made.ask(address("data"), app=app)
    made.datasets[0].change((), [((S1, iri("p"), '"a"', ""), 1_050_000)])
    again = made.ask(address("data"), app=app, if_none_match=first.headers["etag"])
    assert (again.status_code, again.headers["cache-control"]) == (304, "max-age=50")


def test_changes_that_did_not_go_through_the_data_set_are_seen():
    made = server()
    app = application(made.datasets)
    made.ask(address("data"), app=app)
    made.datasets[0].store.change((), [((S1, iri("p"), '"z"', ""), None)])
    assert read(made.ask(address("data"), app=app)).total == 3


def test_modified_since():
    made = server()
    app = application(made.datasets)
    assert "last-modified" not in made.ask(address("data"), app=app).headers, "it may change again within the second"
    made.now += 1_000
    sent = made.ask(address("data"), app=app).headers["last-modified"]
    assert made.ask(address("data"), app=app, if_modified_since=sent).status_code == 304
    assert made.ask(address("data"), app=app, if_modified_since=sent, if_none_match='"other"').status_code == 200
    assert made.ask(address("data"), app=app, if_modified_since="yesterday").status_code == 200
    made.datasets[0].change((), [((S1, iri("p"), '"z"', ""), None)])
    assert made.ask(address("data"), app=app, if_modified_since=sent).status_code == 200


def test_codings():
    made = server()
    plain = made.ask(address("data"))
    assert "content-encoding" not in plain.headers
    assert plain.headers["vary"] == "Accept, Accept-Encoding"
    for wish, coding in (("gzip", "gzip"), ("gzip, br", "br")):
        response = made.ask(address("data"), accept_encoding=wish)
        assert response.headers["content-encoding"] == coding
        assert int(response.headers["content-length"]) < len(plain.content) / 2
        assert response.content == plain.content
    assert "content-encoding" not in made.ask(address("data"), accept_encoding="gzip;q=0").headers


def test_head():
    made = server(end=1_010_000)
    full, head = made.ask(address("data")), made.ask(address("data"), "HEAD")
    assert head.content == b""
    assert dict(head.headers) == dict(full.headers)
    assert made.ask(address("data"), "HEAD", if_none_match=full.headers["etag"]).status_code == 304


TERM = st.sampled_from([iri("a"), iri("b"), iri("c")])
QUAD = st.tuples(TERM, TERM, TERM, st.sampled_from(["", iri("a")]))
END = st.one_of(st.none(), st.integers(1_000_001, 1_060_000))
STEP = st.tuples(st.lists(QUAD, max_size=3), st.lists(st.tuples(QUAD, END), max_size=3), st.integers(0, 9_000))
WISH = st.tuples(*[st.one_of(st.none(), TERM)] * 3, st.one_of(st.none(), st.sampled_from(["", iri("a")])))


@given(steps=st.lists(STEP, max_size=8), wishes=st.lists(WISH, min_size=1, max_size=3), size=st.integers(1, 4))
def test_what_is_kept_is_what_would_be_made(steps, wishes, size):
    server = Server()
    data = server.dataset("data", [], page_size=size)
    for removed, added, later in steps:
        data.change(removed, added)
        server.now += later
        for wish, (number, limit) in product(wishes, ((1, None), (2, None), (1, 3), (2, 3))):
            wanted, many = select(wish), limit or size
            kept, whole = data.page(wanted, number, limit), data.quads(wanted, 0, 100)
            assert (list(kept.quads), kept.total) == (whole[0][(number - 1) * many :][:many], len(whole[0]))
            assert kept.until == (data.until(wanted) if whole[0] else None)
            assert data.shows(kept)


def test_bodies_are_kept_from_their_second_request_on():
    made = server()
    app = application(made.datasets)
    for subject in range(3):
        made.ask(address("data", subject=f"http://example.org/{subject}"), app=app)
    assert app.counts.made == 3
    assert "kept_bytes 0\n" in made.ask(BASE + "/metrics", app=app).text
    bodies = {made.ask(address("data"), app=app).content for _ in range(4)}
    assert (app.counts.made, app.counts.kept, len(bodies)) == (5, 2, 1)
    made.ask(address("data"), app=app, accept="text/turtle")
    assert (app.counts.made, app.counts.kept) == (6, 2)


@given(st.lists(st.integers(0, 300)), st.integers(1, 5))
def test_keys_seem_seen_that_were_but_for_those_before_the_last_few(keys, most):
    """Small numbers have hashes of their own, so that none of them seems seen that was not."""
    seen, since = SeenKeys(most), set()
    for key in keys:
        assert seen.again(key) == (key in since)
        if key not in since and len(since) == most:
            since.clear()
        since.add(key)


def test_a_change_of_many_quads_touches_all_pages():
    made = server()
    app = application(made.datasets)
    made.ask(address("data"), app=app)
    made.datasets[0].change((), [((iri(f"n{n}"), iri("p"), '"x"', ""), None) for n in range(SWEEP + 1)])
    assert read(made.ask(address("data"), app=app)).total == SWEEP + 3
