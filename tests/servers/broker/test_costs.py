"""What costs too much: refused when it is asked, ended or taken back when it comes later, said by name."""

import pytest

from streamgauge.formats.syntaxes import most_characters
from streamgauge.incremental.drivers.landmark import Landmark
from streamgauge.query import parse_sparql
from streamgauge.servers.broker.limits import BYTES_EACH, DENSE, LimitError, Limits, read_changes, read_graph
from streamgauge.servers.broker.sqlite import SqliteJournal
from streamgauge.sparql import regular
from streamgauge.sparql.needs import TooManySolutionsError
from tests.servers.broker.served import Client
from tests.servers.broker.world import BASE, broker, fact, select, student

SMALL = Limits(effort=2000, derived=500, term=1000, text=10_000)
CROSS = select("?a :name ?b . ?c :name ?d . ?e :name ?f")
PAIRS = select("?a :name ?b . ?c :name ?d")


def people(count):
    return [fact(f"s{n}", "name", f'"{n}"') for n in range(count)]


def test_a_query_that_costs_too_much_makes_no_channel():
    made = broker(limits=SMALL)
    made.load(people(100))
    with pytest.raises(LimitError, match="more than 2000 facts and rows: ask for less"):
        made.create_channel("c", CROSS)
    assert made.channels() == []
    made.create_channel("c", select("?a :name ?b"))
    assert len(made.rows("c")[1]) == 100


@pytest.mark.parametrize("durable", [False, True])
def test_a_channel_that_comes_to_cost_too_much_ends_and_the_publication_is_taken(tmp_path, durable):
    path = tmp_path / "journal"
    made = broker(limits=SMALL, journal=SqliteJournal(path) if durable else None)
    for name, query in (("c", PAIRS), ("same", PAIRS), ("calm", select("?a :name ?b"))):
        made.create_channel(name, query)
    subscription = {name: made.subscribe(name, "me", lambda: None) for name in ("c", "same", "calm")}
    assert made.publish(people(5)).number == 1
    assert made.publish(people(90)).number == 2
    for name in ("c", "same"):
        assert [len(notification.added) for notification in subscription[name].take()] == [25]
        assert "more than 2000 facts and rows: the channel was ended" in subscription[name].over.why
        assert subscription[name].over.kind == "failed"
    assert [len(notification.added) for notification in subscription["calm"].take()] == [5, 85]
    assert [channel.name for channel in made.channels()] == ["calm"]
    made.publish(people(91))
    assert [len(notification.added) for notification in subscription["calm"].take()] == [1]
    if durable:
        made.close()
        made = broker(limits=SMALL, journal=SqliteJournal(path))
        assert [channel.name for channel in made.channels()] == ["calm"]
        assert len(made.rows("calm")[1]) == 91
    made.close()


def test_a_channel_that_costs_too_much_after_a_restart_is_gone(tmp_path):
    path = tmp_path / "journal"
    made = broker(journal=SqliteJournal(path))
    made.load(people(100))
    for name in ("c", "same"):
        made.create_channel(name, PAIRS)
    made.create_channel("calm", select("?a :name ?b"))
    made.close()
    made = broker(limits=SMALL, journal=SqliteJournal(path))
    assert [channel.name for channel in made.channels()] == ["calm"]
    made.close()


@pytest.mark.parametrize("durable", [False, True])
def test_a_publication_of_which_too_much_follows_is_refused_and_changes_nothing(tmp_path, durable):
    path = tmp_path / "journal"
    made = broker(limits=SMALL, journal=SqliteJournal(path) if durable else None)
    made.create_channel("c", select("?a :partOf ?b"))
    subscription = made.subscribe("c", "me", lambda: None)
    made.publish(BASE)
    before, _ = set(made.facts()), subscription.take()
    chain = tuple(fact(f"x{n}", "partOf", f"x{n + 1}") for n in range(200))
    waiting = [made.submit(student(1), ()), made.submit(chain, (), "k"), made.submit(student(2), ())]
    made.step()
    assert (waiting[0].result().number, waiting[2].result().number) == (2, 4)
    with pytest.raises(LimitError, match="derive more than 500 facts from this change: publish it in smaller parts"):
        waiting[1].result()
    assert subscription.take() == []
    made.delete((*student(1), *student(2)))
    assert set(made.facts()) == before
    assert not made.publish(chain[:10], "k").repeated
    if durable:
        made.close()
        made = broker(limits=SMALL, journal=SqliteJournal(path))
    assert len(made.rows("c")[1]) == 5 + 55
    made.close()


@pytest.mark.parametrize("durable", [False, True])
def test_a_deletion_by_which_too_much_is_lost_is_refused_and_changes_nothing(tmp_path, durable):
    """The middle of a chain that came link by link holds up 900 pairs; its last link holds up 60."""
    path = tmp_path / "journal"
    made = broker(limits=SMALL, journal=SqliteJournal(path) if durable else None)
    made.create_channel("c", select("?a :partOf ?b"))
    subscription = made.subscribe("c", "me", lambda: None)
    links = [fact(f"x{n}", "partOf", f"x{n + 1}") for n in range(60)]
    for link in links:
        made.publish([link])
    before, _ = set(made.facts()), subscription.take()
    with pytest.raises(LimitError, match="undo more than 500 derivations of rules: delete in smaller parts"):
        made.delete([links[30]])
    assert subscription.take() == []
    assert set(made.facts()) == before
    for link in reversed(links[10:]):
        made.delete([link])
    if durable:
        made.close()
        made = broker(limits=SMALL, journal=SqliteJournal(path))
    assert len(made.rows("c")[1]) == 55
    made.close()


def test_a_large_publication_lets_a_channel_look_at_three_times_as_much_as_a_small_one():
    """Each of the 10,000 triples of 64 KB let a channel look at 100 facts more: a star held up all others for 0.6 s."""
    knowledge = Landmark()
    knowledge.limit(10_000_000, 10_000, 20_000)
    assert [knowledge._most(size) for size in (1, 100, 400, 9_000, 10_000)] == [20_100, 30_000, 60_000, 60_000, 60_000]
    assert knowledge._most(20_000) == 1_060_000
    made = broker(limits=Limits(change=1_000))
    made.create_channel("joins", select("?a :q ?b . ?a :q ?c"))
    made.create_channel("all", select("?a :q ?b"))
    made.publish([fact("big", "q", f"n{n}") for n in range(200)])
    assert [channel.name for channel in made.channels()] == ["all"]


def dense(items):
    """A list of so many digits, with two triples in two characters."""
    return f"<urn:t:l> <urn:t:is> ({' '.join(str(n % 7) for n in range(items))}) .".encode()


def test_a_text_with_a_triple_for_each_byte_is_refused_by_name():
    """A publication holds up others for as long as its triples take, and 64 KB may not hold 64,000 of them."""
    limits = Limits(graph=100_000, term=2**20)
    body = dense(32_000)
    assert len(body) < 2**16
    most = DENSE + len(body) // BYTES_EACH
    with pytest.raises(LimitError, match=f"more than {most} triples in a text of {len(body)} bytes: publish them in"):
        read_graph(body, "text/turtle", limits)
    assert len(read_graph(dense(6_500), "text/turtle", limits)) == 13_001
    lines = b"".join(b"<urn:t:s%d> <urn:t:p> %d .\n" % (n, n) for n in range(50_000))
    assert len(read_graph(lines, "text/turtle", limits)) == 50_000
    with pytest.raises(LimitError, match="a publication of more than 9 triples: publish it in parts"):
        read_graph(dense(20), "text/turtle", Limits(graph=9))


LONG = "p" * 20_000


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/turtle", f"@prefix p: <urn:{LONG}>. {' '.join(f'p:a p:b p:c{n} .' for n in range(2_000))}"),
        ("text/turtle", f"<urn:{LONG}> <urn:p> {','.join(map(str, range(6_000)))} ."),
        (
            "application/trig",
            f"@base <urn:{LONG}/> . <urn:g> {{ {' '.join(f'<a> <b> <{n}> .' for n in range(2_000))} }}",
        ),
    ],
)
def test_a_text_that_repeats_a_long_name_is_refused_before_it_is_written_out(kind, body):
    """64 KB became 150 MB: 4 s of a journal's time."""
    with pytest.raises(LimitError, match=f"have more than {most_characters(len(body))} characters in all"):
        read_graph(body.encode(), kind, Limits())
    assert len(read_graph(body.replace(LONG, "p").encode(), kind, Limits())) >= 2_000


def test_an_update_that_repeats_a_long_text_changes_nothing():
    made = broker(limits=Limits())
    made.load(people(500))
    before = set(made.facts())
    update = f"PREFIX : <urn:t:> INSERT {{ ?a :says '{LONG}' }} WHERE {{ ?a :name ?b }}"
    waiting = made.modify(read_changes(update))
    made.step()
    with pytest.raises(LimitError, match="characters in all: publish them in parts, or shorten"):
        waiting.result()
    assert set(made.facts()) == before
    made.modify(read_changes(update.replace(LONG, "p")))
    made.step()
    assert len(made.facts()) > len(before)


@pytest.mark.parametrize(
    "where",
    [
        "?a :name ?b . ?c :name ?d . ?e :name ?f",
        "?x ?p ?x . ?y ?q ?y . ?z ?r ?z",
        "?a :name ?b . ?c :name ?b . ?c ?p ?c . ?d ?q ?d",
    ],
)
def test_an_update_that_looks_at_too_much_changes_nothing(where):
    made = broker(limits=SMALL)
    made.load([*people(100), *(fact(f"s{n}", "is", f"s{n}") for n in range(20))])
    before = set(made.facts())
    waiting = made.modify(read_changes(f"PREFIX : <urn:t:> INSERT {{ ?a :far ?f }} WHERE {{ {where} }}"))
    made.step()
    with pytest.raises(TooManySolutionsError, match="use more constants"):
        waiting.result()
    assert set(made.facts()) == before


@pytest.mark.parametrize(
    "pattern",
    [
        "?a :name ?b BIND(CONCAT(?b, ?b, ?b, ?b) AS ?c) BIND(CONCAT(?c, ?c, ?c) AS ?d)",
        "?a :name ?b FILTER(STRLEN(REPLACE(?b, '.', ?b)) > 1)",
        "?a :name ?b BIND(REPLACE(?b, '', '0123456789012') AS ?c)",
        "?a :name ?b OPTIONAL { ?a :mail ?m FILTER(ENCODE_FOR_URI(?m) = ?b) }",
        "?a :name ?b FILTER EXISTS { ?a :mail ?m FILTER(CONCAT(" + ", ".join(["?m"] * 11) + ") = ?b) }",
        "?a :name ?b FILTER(" + "UCASE(" * 3 + "?b" + ")" * 3 + " = 'A')",
    ],
)
def test_a_text_that_may_become_too_long_is_refused(pattern):
    made = broker(limits=SMALL)
    with pytest.raises(LimitError, match="a computed text may have more than 10000 characters"):
        made.create_channel("c", select(pattern))
    made.create_channel("c", select("?a :name ?b BIND(CONCAT(?b, ' ', UCASE(?b)) AS ?c) FILTER(REGEX(?c, '^A'))"))


def test_a_term_that_is_too_long_is_refused():
    limits = Limits(graph=10, term=100)
    with pytest.raises(LimitError, match='a term of more than 100 characters: "xxx'):
        read_graph(f"<urn:a> <urn:p> '{'x' * 99}' .".encode(), "text/turtle", limits)
    assert read_graph(f"<urn:a> <urn:p> '{'x' * 98}' .".encode(), "text/turtle", limits)


REGEXES = (
    "^(a+)+$",
    "^(a|a)*$",
    "^(a|aa)+$",
    "(.*a){20}b",
    "^((a{0,20}){0,20}){0,20}b$",
    "(x+x+)+y",
    "^(([a-z])+.)+[A-Z]$",
    "(a|a)" * 60 + "b",
    "(" * 20 + "a" + "|a)" * 20 + "b",
)


@pytest.mark.parametrize("regex", REGEXES)
def test_no_regular_expression_goes_back(regex):
    """What takes a backtracking engine longer than the universe has been is answered."""
    made = broker()
    made.create_channel("c", select(f'?a :name ?b FILTER REGEX(?b, "{regex}")'))
    made.publish([fact("s", "name", f'"{"a" * 5000}!"'), fact("t", "name", '"a"')])
    assert made.fault == ""
    assert ("<urn:t:s>", f'"{"a" * 5000}!"') not in made.rows("c")[1]


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("^((a{0,50}){0,50}){0,50}b$", "has 1.28e"),
        ("(((((a{1,99}){1,99}){1,99}){1,99}){1,99})", "nested counted repetitions multiply"),
        ("(a{99}){999999999999999999}", "counted repetitions"),
        ("[a-z]" * 2001, "the pattern has 10005 characters"),
    ],
)
def test_a_pattern_that_is_too_large_is_refused_by_name(pattern, why):
    made = broker()
    with pytest.raises(LimitError, match=why):
        made.create_channel("c", select(f'?a :name ?b FILTER(REGEX(?b, "{pattern}"))'))
    with pytest.raises(LimitError, match=why):
        made.create_channel("c", select(f'?a :name ?b BIND(REPLACE(?b, "{pattern}", "x") AS ?c)'))
    assert made.channels() == []


def test_few_patterns_may_go_back():
    made, back = broker(), [f"REGEX(?b, '(a+)\\\\1{n}')" for n in range(3)]
    made.create_channel("two", select(f"?a :name ?b FILTER({' || '.join(back[:2])})"))
    with pytest.raises(LimitError, match="3 patterns that have back-references"):
        made.create_channel("three", select(f"?a :name ?b FILTER({' || '.join(back)})"))
    made.publish([fact("s", "name", '"aa1"'), fact("t", "name", '"a1"')])
    assert [row[0] for row in made.rows("two")[1]] == ["<urn:t:s>"]


@pytest.mark.slow
def test_a_pattern_is_compiled_once_for_a_query_and_not_for_a_row(monkeypatch):
    """Although nothing is remembered of other queries."""
    made, compiled = broker(), []
    monkeypatch.setattr(
        regular, "_compiled", lambda *given, original=regular._compiled: original(*given, *compiled.append(1) or ())
    )
    patterns = ", ".join(f'REGEX(?b, "(a|b{n}.c){{2}}")' for n in range(300))
    made.create_channel("c", select(f"?a :name ?b FILTER(true IN ({patterns}))"))
    before = len(compiled)
    regular._known.cache_clear()
    for n in range(5):
        made.publish([fact(f"s{n}", "name", f'"{n}"')])
    assert before >= 300
    assert len(compiled) == before


def test_what_costs_too_much_is_said_on_the_web():
    made = broker(limits=SMALL)
    made.load(people(100))
    with Client(made) as client:
        refused = client("PUT", "/channels/c", content=CROSS)
        assert (refused.status_code, "more than 2000 facts and rows" in refused.json()["error"]) == (422, True)
        chain = "".join(f"<urn:t:x{n}> <urn:t:partOf> <urn:t:x{n + 1}> .\n" for n in range(200))
        refused = client("POST", "/publish", content=chain, headers={"Content-Type": "text/turtle"})
        assert (refused.status_code, "publish it in smaller parts" in refused.json()["error"]) == (422, True)
        assert client("GET", "/health").is_success


def test_a_query_that_cost_too_much_to_create_is_forgotten() -> None:
    """What it had found by then is nobody's: the next publication is taken in."""
    made = broker(limits=Limits(effort=300))
    made.load(BASE)
    for number in range(3):
        with pytest.raises(LimitError):
            made.create_channel(f"large{number}", "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }")
        future = made.submit((("<urn:t:s>", "<urn:t:p>", f'"{number}"'),), (), None)
        made.step()
        assert future.result().number == number + 1
    assert made.fault == ""


def test_a_query_that_fails_and_ends_in_one_turn_is_not_asked_again() -> None:
    landmark = Landmark()
    standing = landmark.ask(parse_sparql("SELECT * { ?s ?p ?o }"))
    standing.fail()
    standing.end()
    assert list(landmark.touched()) == []
