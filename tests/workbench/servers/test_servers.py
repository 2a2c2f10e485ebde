"""The room Servers: a broker's channels, publications and changes; facts over time; what is not asked."""

import json
import re
import threading
from contextlib import contextmanager
from html import unescape

import httpx
import pytest

from streamgauge.model.fact import Fact
from streamgauge.servers.broker.limits import Limits
from streamgauge.servers.fragments.annotations import method, methods
from streamgauge.servers.fragments.labels import Label, Style
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.pages.http import application
from streamgauge.servers.fragments.store import Keep
from streamgauge.servers.fragments.store.indexed import MemoryStore
from streamgauge.servers.fragments.writes import add, sweep
from streamgauge.servers.http.server import Serving
from streamgauge.workbench.rooms.servers.fragments import short_prefixes
from tests.servers.broker.served import GRAPH, OTHER, serving
from tests.servers.broker.world import broker, fact, select
from tests.workbench.serving import opened

pytestmark = pytest.mark.server

HTML = {"accept": "text/html"}
STUDENTS = select("?x a :Student")
DAY = 86_400_000
NOW = 20_000 * DAY
E = "http://example.org/train#"


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    with (
        opened(tmp_path_factory.mktemp("runs")) as bench,
        httpx.Client(base_url=bench.url, timeout=60, headers=HTML) as client,
    ):
        yield client


@contextmanager
def fragments(style, facts):
    """A fragments server with facts in a style."""
    store, numbers = MemoryStore(), iter(range(1000))
    data = DataSet("trains", store, style, lambda: NOW)
    data.change((), method(style.method).annotate(facts, style, lambda _: f"n{next(numbers)}"))
    with app_served(application([data])) as url:
        yield url


@contextmanager
def remembering():
    """A fragments server that keeps its history: one of two facts has ended."""
    now = [NOW]
    data = DataSet("trains", MemoryStore(Keep()), Style(), lambda: now[0])
    first, second = (Fact((f"<{E}1>", f"<{E}delay>", f'"{n}"'), None, NOW + n * 1000) for n in (5, 9))
    add(data, [first, second])
    now[0] = NOW + 6000
    sweep(data, now[0])
    with app_served(application([data])) as url:
        yield url


@contextmanager
def app_served(app):
    """The address of a server of an application."""
    messages = []
    server = Serving(app, "127.0.0.1", 0, lambda: None, messages.append)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not messages:
            thread.join(0.01)
        yield messages[0].rstrip("/")
    finally:
        server.stop()
        thread.join()


def name(bench, kind, address, token=""):
    made = bench.post("/servers/", data={"kind": kind, "address": address, "token": token})
    return made.headers["location"] if made.status_code == 303 else made


def events(bench, address, count, after):
    result, kind, number = [], "message", ""
    with bench.stream("GET", f"{address}events", params={"after": after}) as answer:
        for text in answer.iter_lines():
            key, _, value = text.partition(": ")
            if key == "event":
                kind = value
            elif key == "id":
                number = value
            elif key == "data":
                result.append((number, kind, json.loads(value)))
                kind = "message"
                if len(result) == count:
                    break
    return result


def alert(page):
    return page.text.split('role="alert"')[1].split("</p>")[0]


def test_a_channel_is_made_published_to_and_followed(bench):
    with serving(broker()) as (url, _):
        at = name(bench, "broker", url)
        assert "There is no channel" in bench.get(at).text
        made = bench.post(f"{at}channels", data={"name": "a channel", "query": STUDENTS})
        channel = made.headers["location"]
        assert channel == f"{at}channels/a%20channel/"
        taken = bench.post(f"{at}publish", data={"graph": GRAPH, "format": "text/turtle", "change": "publish"})
        assert taken.headers["location"] == f"{at}?published=1"
        assert "Publication 1 took effect." in bench.get(taken.headers["location"]).text
        shown = bench.get(channel).text
        assert '<td title="&lt;urn:t:s1&gt;">:s1</td>' in shown
        assert 'data-last="1"' in shown
        bench.post(f"{at}publish", data={"graph": OTHER, "format": "application/trig", "change": "publish"})
        bench.post(f"{at}publish", data={"graph": GRAPH, "format": "text/turtle", "change": "delete"})
        first, second = events(bench, channel, 2, 1)
        assert (first[0], first[2]["rows"][0][2:]) == ("2", ["+", [[":s2", "<urn:t:s2>"]]])
        assert (second[0], second[2]["rows"][0][2:]) == ("3", ["\N{MINUS SIGN}", [[":s1", "<urn:t:s1>"]]])
        assert '<td class="n">3</td>' in bench.get(at).text
        assert bench.post(f"{channel}delete").headers["location"] == at
        assert "there is no channel" in bench.get(channel).text
        assert [kind for _, kind, _ in events(bench, channel, 1, 1)] == ["over"]
        for form in ("publish", "channels"):
            assert bench.get(f"{at}{form}", follow_redirects=True).url.path == at
        bench.post(f"/servers/{at.split('/')[3]}/forget")
        assert bench.get(at).status_code == 404


def test_the_kind_of_a_server_is_recognised_by_its_answers(bench):
    with serving(broker()) as (url, _), fragments(Style(), [Fact(("<urn:a>", "<urn:b>", "<urn:c>"))]) as data:
        assert name(bench, "", url).startswith("/servers/broker/")
        assert name(bench, "", data).startswith("/servers/fragments/")
    refused = alert(name(bench, "", bench.base_url))
    assert "neither a broker nor a fragments server answers at" in refused
    assert "{" not in refused


def test_refusals_of_a_broker_stand_beside_their_forms_and_keep_the_text(bench):
    with serving(broker()) as (url, _):
        at = name(bench, "broker", url)
        refused = bench.post(f"{at}publish", data={"graph": "<a> <b", "format": "text/turtle", "change": "publish"})
        assert refused.status_code == 400
        assert "line 1: not text/turtle" in alert(refused)
        assert "&lt;a&gt; &lt;b</textarea>" in refused.text
        refused = bench.post(f"{at}channels", data={"name": "c", "query": "DESCRIBE <urn:a>"})
        assert "DESCRIBE" in alert(refused)
        refused = bench.post(f"{at}publish", data={"graph": GRAPH, "format": "text/html", "change": "publish"})
        assert "not a format of publications" in alert(refused)
        hostile = '<urn:t:s9> a <urn:t:Student> ; <urn:t:name> "<script>alert(1)</script>" .'
        bench.post(f"{at}publish", data={"graph": hostile, "format": "text/turtle", "change": "publish"})
        channel = bench.post(f"{at}channels", data={"name": "<b>", "query": "SELECT * { ?x <urn:t:name> ?n }"})
        assert "&lt;script&gt;" in bench.get(channel.headers["location"]).text
        assert "<b>" not in bench.get(at).text
    assert "is a broker there?" in alert(bench.get(at))


@pytest.mark.parametrize(
    "style", [Style(method, label) for method in methods() for label in (Label.INTERVAL,)] + [Style()]
)
def test_facts_are_shown_with_their_times_however_these_are_written(bench, style):
    facts = [
        Fact((f"<{E}1>", f"<{E}delay>", '"5"'), NOW - DAY, NOW + DAY),
        Fact((f"<{E}1>", f"<{E}delay>", '"9"'), NOW + DAY, None),
        Fact((f"<{E}1>", f"<{E}name>", '"IC"')),
    ]
    with fragments(style, facts) as url:
        at = name(bench, "fragments", url)
        shown = bench.get(at).text
        assert f"{url}/trains</a>" in shown
        here = {"set": f"{url}/trains", "subject": f"{E}1"}
        page = bench.get(f"{at}facts", params=here)
        assert page.status_code == 200, alert(page)
        text = page.text
        assert f"Times by {style.method}, {style.label}s" in text
        assert "until 2024-10-05" in text
        assert ">train:delay</a>" in text
        assert text.count('class="fact"') == 3
        assert text.count('class="holds"') == 2 or style.label is Label.EXPIRATION
        assert '<span class="note">always</span>' in text


def test_facts_are_shown_as_they_were_at_an_instant(bench):
    with remembering() as url:
        at = name(bench, "fragments", url)
        here = {"set": f"{url}/trains", "predicate": f"{E}delay"}
        assert bench.get(f"{at}facts", params=here).text.count('class="fact"') == 1
        past = bench.get(f"{at}facts", params={**here, "at": str(NOW + 1000)})
        assert past.status_code == 200, alert(past)
        assert past.text.count('class="fact"') == 2
        assert "until 2024-10-04 00:00:05" in past.text
        assert past.text.index("until 2024-10-04 00:00:05") < past.text.index("until 2024-10-04 00:00:09")
        (earlier,) = re.findall(r'<a class="button" href="([^"]*)">Earlier: ', past.text)
        assert bench.get(unescape(earlier)).status_code in (200, 400)
        assert ">Now</a>" in past.text
        assert f"As it was at {NOW + 1000}" in past.text


def test_a_data_set_of_another_origin_and_terms_that_are_none_are_refused(bench):
    with fragments(Style(), [Fact(("<urn:a>", "<urn:b>", "<urn:c>"))]) as url:
        at = name(bench, "fragments", url)
        elsewhere = bench.get(f"{at}facts", params={"set": "http://169.254.169.254/latest"})
        assert "another origin" in alert(elsewhere) or "not a public host" in alert(elsewhere)
        wrong = bench.get(f"{at}facts", params={"set": f"{url}/trains", "subject": "a b"})
        assert wrong.status_code == 400
        assert "a b" in alert(wrong)
        past = bench.get(f"{at}facts", params={"set": f"{url}/trains", "at": "2020-01-01T00:00:00Z"})
        assert "answers 410: the history does not reach back to 2020-01-01T00:00:00Z" in unescape(alert(past))
        shown = bench.get(f"{at}facts", params={"set": f"{url}/trains", "predicate": "urn:b"}).text
        assert "No times are written in this data set." in shown


def test_what_is_no_broker_or_sends_too_much_is_said_in_a_sentence(bench):
    async def answer(scope, receive, send):
        path = scope["path"]
        body = {
            "/channels": b'{"channels": ["<i>", "big"], "kept": {"bytes": 1, "limit": 2, "refused": ""}}',
            "/channels/<i>": b'{"channel": "<i>", "query": 7, "notification": "many"}',
            "/channels/big": b'{"channel": "big", "query": "<i>", "form": "SELECT", "variables": ["x"],'
            b' "notification": 3, "subscribers": 0, "connections": 0}',
        }.get(path, b" " * 9_000_000)
        head = [(b"content-type", b"application/json"), (b"notification", b"3")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": body})

    with app_served(answer) as url:
        at = name(bench, "broker", url)
        assert "does not answer as a broker does" in alert(bench.get(at))
        shown = bench.get(f"{at}channels/big/")
        assert "more than 8388608 bytes" in alert(shown)
        assert '<pre tabindex="0">&lt;i&gt;</pre>' in shown.text
        assert "does not answer as a broker does" in bench.get(f"{at}channels/%3Ci%3E/").text


def test_only_hosts_that_may_be_are_asked(bench):
    for address, why in (
        ("ftp://127.0.0.1/", "http:// or https://"),
        ("http://user:secret@127.0.0.1/", "credentials"),
        ("http://169.254.169.254/", "link-local"),
        ("http://[fe80::1]/", "link-local"),
        ("http://0.0.0.0:4200/", "reserved"),
        ("http://[::ffff:169.254.169.254]/", "link-local"),
        ("http://nowhere.invalid/", "not found"),
        ("", "not a web address"),
    ):
        assert why in alert(name(bench, "broker", address)), address
    assert "not a kind of server" in alert(name(bench, "mail", "http://127.0.0.1/"))
    refused = bench.post("/servers/", data={"address": "x"}, headers={"origin": "https://elsewhere.example"})
    assert refused.status_code == 403


def test_short_names_are_of_spaces_that_come_twice():
    terms = [f"<{E}a>", f"<{E}b>", "<http://xmlns.com/foaf/0.1/name>", "<urn:x>", "<http://once.example/a>"]
    assert short_prefixes(terms) == {"foaf": "http://xmlns.com/foaf/0.1/", "train": E}


def test_what_is_kept_for_absent_subscribers_is_shown(bench):
    made = broker(limits=Limits(kept_total=2**16))
    for number in range(20):
        made.create_channel(f"c{number}", select(f"?x a :Student FILTER (?x != :nobody{number})"))
        made.subscribe(f"c{number}", "absent", lambda: None).close()
    for number in range(60):
        made.publish([fact(f"s{number}{place}", "a", "Student") for place in range(5)])
    with serving(made) as (url, _):
        shown = bench.get(name(bench, "broker", url)).text
    assert "Kept for absent subscribers: 0.1 of 0.1 MiB." in shown
    assert "reached 65536 bytes: acknowledge notifications, or unsubscribe" in shown
