"""Kinds of hostile requests of 64 KB or less, for each server (``benchmarks.hostile`` measures them)."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Final
from urllib.parse import quote

LARGEST: Final = 64 * 2**10
PEOPLE: Final = 2_000
PREFIX: Final = "PREFIX : <urn:t:> "
SELECT, TURTLE, UPDATE = "application/sparql-query", "text/turtle", "application/sparql-update"
NOW: Final = time.time_ns() // 1_000_000


@dataclass(frozen=True)
class Attack:
    """A request; the kind of body ``websocket`` is a message to SEPA's address."""

    method: str
    path: str
    body: str = ""
    kind: str = TURTLE


@dataclass(frozen=True)
class AttackKind:
    """A hostile kind: requests that prepare it, the one that is measured, those that clear up after it."""

    server: str
    name: str
    ask: Attack
    before: tuple[Attack, ...] = ()
    after: tuple[Attack, ...] = ()


def select(pattern: str, what: str = "*", tail: str = "") -> str:
    """A SELECT query."""
    return f"{PREFIX}SELECT {what} {{ {pattern} }} {tail}"


def window(pattern: str, what: str = "*", size: str = "RANGE PT10S STEP PT0.1S") -> str:
    """A query over a window of the other client's stream."""
    named = f"FROM NAMED WINDOW <urn:w> ON <urn:s> [{size}]"
    return f"{PREFIX}SELECT {what} {named} WHERE {{ WINDOW <urn:w> {{ {pattern} }} }}"


def within(parts: Iterator[str], room: int = LARGEST - 1000) -> list[str]:
    """As many parts as there is room for."""
    found: list[str] = []
    for each in parts:
        room -= len(each) + 1
        if room < 0:
            break
        found.append(each)
    return found


def pattern_kinds() -> dict[str, str]:
    """Patterns that cost much, over people with :name, :age and :knows."""
    doubling = " ".join(f"BIND(CONCAT(?t{n}, ?t{n}) AS ?t{n + 1})" for n in range(20)).replace("?t0", "?n")
    regexes = ", ".join(within((f'REGEX(?n, "(x|y{n}.z){{2}}")' for n in count()), 60_000))
    return {
        "cross product of three": "?a :name ?b . ?c :name ?d . ?e :name ?f",
        "cross product of six free patterns": " . ".join(f"?s{n} ?p{n} ?o{n}" for n in range(6)),
        "cross product under a filter": "?a :age ?b . ?c :age ?d . ?e :age ?f FILTER(?b + ?d > ?f && ?f > ?b)",
        "cross product of groups": "{ ?a :name ?b } { ?c :name ?d FILTER(STRLEN(?d) > 0) } { ?e :age ?f }",
        "OPTIONAL on loose variables": "?a :name ?b " + " ".join(f"OPTIONAL {{ ?x{n} :age ?y{n} }}" for n in range(6)),
        "MINUS on a loose variable": "{ ?a :name ?b OPTIONAL { ?a :q ?c } } MINUS { ?d :age ?e OPTIONAL { ?d :q ?c } }",
        "NOT EXISTS of a product": "?a :name ?b . ?c :age ?d FILTER NOT EXISTS { ?e :knows ?a . ?f :knows ?c }",
        "200 UNIONs of products": " UNION ".join(f"{{ ?a :name ?b{n} . ?c{n} :age ?d }}" for n in range(200)),
        "a path from everywhere": "?a :knows+ ?b",
        "a path of any length there and back": "?a (:knows|^:knows)* ?b",
        "18 repeated paths in a row": f"?a {'/'.join(f':p{n}*' for n in range(18))} ?b",
        "paths of paths": "?a ((:knows/:knows)*/(:knows|:name)*)* ?b",
        "REGEX with nested counts": '?a :name ?n FILTER REGEX(?n, "((((a{1,50}){1,50}){1,50}){1,50}){1,50}b")',
        "REGEX with a back-reference": '?a :name ?n FILTER REGEX(?n, "^(a*)*\\\\1b(a*)*$")',
        "REGEX of many states": '?a :name ?n FILTER REGEX(?n, "((a?){30}){30}((n?){30}){30}b")',
        "1,900 REGEXes": f"?a :name ?n FILTER(true IN ({regexes}))",
        "REPLACE that grows": '?a :name ?n BIND(REPLACE(?n, ".", "$0$0$0$0$0$0$0$0") AS ?m) FILTER(STRLEN(?m) > 3)',
        "CONCAT that doubles": f"?a :name ?n {doubling} FILTER(STRLEN(?t20) > 3)",
        "VALUES products": " ".join(f"VALUES ?v{n} {{ {' '.join(map(str, range(1200)))} }}" for n in range(4)),
        "IN with 7,000 terms": f"?a :age ?n FILTER(?n + 1 IN ({', '.join(map(str, range(100000, 107000)))}))",
        "500 BINDs": "?a :age ?n " + " ".join(f"BIND(?n * {n} + ?n / 7 AS ?b{n})" for n in range(500)),
        "a subquery of a product": "{ SELECT DISTINCT ?b ?d { ?a :name ?b . ?c :name ?d } } ?e :name ?f",
    }


def broker_kinds() -> Iterator[AttackKind]:
    """Hostile to the broker: channels, publications, updates, rows, SEPA."""
    channel, gone = "/channels/hostile", (Attack("DELETE", "/channels/hostile"),)

    def created(name: str, query: str) -> AttackKind:
        path = f"/channels/{quote(name)}"
        return AttackKind("broker", name, Attack("PUT", path, query, SELECT), (), (Attack("DELETE", path),))

    for name, pattern in pattern_kinds().items():
        yield created(f"channel: {name}", select(pattern))
    yield created("channel: COUNT of a product", select("?a :name ?b . ?c :name ?d", "(COUNT(*) AS ?n)"))
    yield created("channel: GROUP_CONCAT of all", select("?a :name ?b", "(GROUP_CONCAT(?b) AS ?n)"))
    yield created("channel: MIN of texts", select("?a ?p ?b", "(MIN(STR(?b)) AS ?n)"))
    yield created("channel: all triples", select("?a ?p ?b"))
    yield created(
        "channel: ORDER BY of a product", select("?a :name ?b . ?c :name ?d", "*", "ORDER BY ?b ?d LIMIT 1000000")
    )
    for name, query in (("a product", select("?a :name ?b . ?c :name ?d . ?e :name ?f")), ("all", select("?a ?p ?b"))):
        text = json.dumps({"subscribe": {"sparql": query, "alias": "x"}})
        yield AttackKind("broker", f"SEPA: {name}", Attack("", "", text, "websocket"))
    yield AttackKind(
        "broker",
        "rows of all",
        Attack("GET", f"{channel}/rows"),
        (Attack("PUT", channel, select("?a ?p ?b"), SELECT),),
        gone,
    )
    free = " . ".join(f"?s{n} ?p{n} ?o{n}" for n in range(6))
    wide = " . ".join(f"?a :made{n} ?b" for n in range(2500))
    for name, text in (
        ("six free patterns", f"INSERT {{ ?s0 :x ?o5 }} WHERE {{ {free} }}"),
        ("a wide template", f"INSERT {{ {wide} }} WHERE {{ ?a :name ?b }}"),
        ("all names go", "DELETE WHERE { ?a :none ?b . ?c :name ?d . ?e ?f ?g }"),
        ("data of 64 KB", f"INSERT DATA {{ {' '.join(within(f':u{n} :p {n} .' for n in count()))} }}"),
    ):
        yield AttackKind("broker", f"update: {name}", Attack("POST", "/update", PREFIX + text, UPDATE))
    for name, text in graphs().items():
        yield AttackKind(
            "broker", f"publication: {name}", Attack("POST", "/publish", text), (), (Attack("POST", "/delete", text),)
        )
    chain = "".join(f":x{n} :partOf :x{n + 1} . " for n in range(2000))
    star, joined = graphs()["10,000 triples"], select("?a :q ?b . ?a :q ?c")
    yield AttackKind(
        "broker",
        "publication: a star beside a channel that joins it",
        Attack("POST", "/publish", star),
        (Attack("PUT", channel, joined, SELECT),),
        (*gone, Attack("POST", "/delete", star)),
    )
    links = [f"@prefix : <urn:t:>. :y{n} :partOf :y{n + 1} ." for n in range(300)]
    yield AttackKind(
        "broker",
        "deletion: the middle of a chain",
        Attack("POST", "/delete", links[150]),
        tuple(Attack("POST", "/publish", link) for link in links),
    )
    yield AttackKind(
        "broker", "publication: a transitive chain", Attack("POST", "/publish", f"@prefix : <urn:t:>.{chain}")
    )


def graphs() -> dict[str, str]:
    """Turtle of 64 KB."""
    return {
        "10,000 triples": f"@prefix : <urn:t:>. :big :q {','.join(within(map(str, count(100000))))} .",
        "1,500 prefixes": "".join(within(f"@prefix p{n}: <urn:{n}:>. p{n}:a p{n}:b p{n}:c." for n in count())),
        "one literal": f"@prefix : <urn:t:>. :long :name '{'a' * 60_000}' .",
        "a deep list": f"@prefix : <urn:t:>. :l :is ({' '.join(within(map(str, count())))}) .",
        "a list of digits": f"@prefix : <urn:t:>. :l :is ({' '.join(str(n % 9) for n in range(32_000))}) .",
        "blank nodes": f"@prefix : <urn:t:>. :l :is {','.join('[]' for _ in range(20_000))} .",
    }


def fragments_kinds() -> Iterator[AttackKind]:
    """Hostile to the fragments server: updates, writes by patterns, uploads, pages that compare."""
    free = " . ".join(f"?s{n} ?p{n} ?o{n}" for n in range(6))
    wide = " . ".join(f"?a :made{n} ?b" for n in range(2500))
    for data in ("few", "people"):
        for name, text in (
            ("six free patterns", f"INSERT {{ ?s0 :x ?o5 }} WHERE {{ {free} }}"),
            ("a wide template", f"INSERT {{ {wide} }} WHERE {{ ?a :name ?b }}"),
            ("a product", "INSERT { ?a :near ?c } WHERE { ?a :age ?b . ?c :age ?d . ?e :age ?f }"),
        ):
            yield AttackKind(
                "fragments", f"update of {data}: {name}", Attack("PATCH", f"/{data}", PREFIX + text, UPDATE)
            )
    for name, text in graphs().items():
        yield AttackKind("fragments", f"upload: {name}", Attack("POST", "/people?for=60s", text))
    yield AttackKind(
        "fragments",
        "upload: facts that end together",
        Attack("POST", "/people?for=500ms", graphs()["10,000 triples"].replace("big", "brief")),
    )
    many = [{"replace": {"predicate": "urn:t:age"}, "by": ""} for _ in range(900)]
    yield AttackKind("fragments", "900 replacements", Attack("PATCH", "/people", json.dumps(many), "application/json"))
    data = " ; ".join(within((f"DELETE DATA {{ :s{n} :age {n} }}" for n in count()), 60_000))
    yield AttackKind("fragments", "1,600 operations", Attack("PATCH", "/people", PREFIX + data, UPDATE))
    yield AttackKind(
        "fragments", "all facts of a predicate", Attack("DELETE", f"/people?predicate={quote('urn:t:knows')}&at=now")
    )
    yield AttackKind("fragments", "a variable twice", Attack("GET", "/people?subject=?x&predicate=?p&object=?x"))
    rows = " ".join(f"(<urn:t:s{n}> UNDEF) (UNDEF <urn:t:s{n}>)" for n in range(32))
    values = quote(f"(?s ?o) {{ {rows} }}")
    yield AttackKind(
        "fragments",
        "bindings that overlap",
        Attack("GET", f"/people?subject=?s&predicate=?p&object=?o&values={values}"),
    )
    yield AttackKind("fragments", "a page of 1,000", Attack("GET", "/people?limit=1000&page=5"))


def queries_kinds() -> Iterator[AttackKind]:
    """Hostile to the query service: registrations, whose work comes with the other client's elements, and feeding."""
    for name, pattern in pattern_kinds().items():
        yield AttackKind("queries", f"query: {name}", Attack("POST", "/queries", window(pattern), SELECT))
    tiny = window("?a ?b ?c", size="RANGE PT1H STEP PT0.001S")
    yield AttackKind("queries", "query: a window each ms", Attack("POST", "/queries", tiny, SELECT))
    elements = within(
        json.dumps({"t": NOW + n, "n": n, "stream": "urn:h", "add": f'<urn:t:f{n}> <urn:t:name> "{n}" .'})
        for n in count()
    )
    jsonl = "application/x-ndjson"
    yield AttackKind(
        "queries",
        "elements: 64 KB",
        Attack("POST", "/streams/urn:h", "\n".join(elements), jsonl),
    )
    far = json.dumps({"t": NOW + 10**12, "n": 1, "stream": "urn:h", "add": "<urn:a> <urn:p> <urn:b> ."})
    every = tiny.replace("ON <urn:s>", "ON <urn:h>").replace("PT1H", "PT1S")
    yield AttackKind(
        "queries",
        "elements: a jump in time",
        Attack("POST", "/streams/urn:h", far, jsonl),
        (
            Attack("POST", "/queries", every, SELECT),
            Attack("POST", "/streams/urn:h", far.replace(str(NOW + 10**12), str(NOW)), jsonl),
        ),
    )
    yield AttackKind(
        "queries", "static data: 10,000 triples", Attack("PUT", "/static/urn:d", graphs()["10,000 triples"])
    )


KINDS: Final[Mapping[str, Callable[[], Iterator[AttackKind]]]] = {
    "broker": broker_kinds,
    "fragments": fragments_kinds,
    "queries": queries_kinds,
}
