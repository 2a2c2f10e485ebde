"""Texts drawn from grammars, as large and as deep as a request can be: SPARQL, its dialects, RDF, JSON, HTTP."""

import json
from collections.abc import Callable
from random import Random

LARGEST = 64 * 2**10
"""Characters of a text."""

LARGE_SHARE, FEW, MANY = 1 / 8, 200, 20_000
"""One text in eight repeats a part up to ``MANY`` times, the others up to ``FEW``: reading it takes as much longer."""

ODD = (
    "\0",
    "\ud7ff",
    "é",
    "\\u0022",
    "\\u003c",
    "'''",
    '"""',
    "<<(",
    ")>>",
    "#",
    "}",
    "${",
    "\\",
    "%",
    "\u202e",
    "𝄞",
    "\\ud834",
)
NUMBERS = ("0", "-1", "1e-3", "1.5", "9" * 20, "9" * 5_000, "1e400", "-0.0", "NaN")
NAMES = ("urn:t:p", "urn:t:q", "http://e/a-b/c(d)/%20?x=1&y=2#z", "urn:t:Student", "x", "http://e/o'neil")
FUNCTIONS = (
    "ABS",
    "STR",
    "BOUND",
    "ISIRI",
    "LCASE",
    "<http://www.w3.org/2001/XMLSchema#integer>",
    "<urn:f>",
    "DATATYPE",
)
REGULAR = ("a", "(a|b)*c", "((a{1,9}){1,9}){1,9}", "(a*)*b", "[", "(?i)a", "\\\\1(a)")

REPEATED = {
    "not": ("SELECT * { ?s ?p ?b FILTER(", "!", "?b", "", ") }"),
    "plus": ("SELECT * { ?s ?p ?b FILTER(?b", "+?b", "", "", ") }"),
    "or": ("SELECT * { ?s ?p ?b FILTER(?b", "||?b", "", "", ") }"),
    "and": ("SELECT * { ?s ?p ?b FILTER(?b<?b&&", "!", "?b", "", ">?b) }"),
    "in": ("SELECT * { ?s ?p ?b FILTER(?b IN (1", ",1", "", "", ")) }"),
    "brackets": ("SELECT * { ?s ?p ?b FILTER(", "(", "?b", ")", ") }"),
    "functions": ("SELECT * { ?s ?p ?b FILTER(", "ABS(", "?b", ")", ") }"),
    "exists": ("SELECT * { ", "FILTER EXISTS { ?s ?p ?o ", "", "}", "}"),
    "groups": ("SELECT * {", "{", "?s ?p ?o", "}", "}"),
    "unions": ("SELECT * { {?s ?p ?o}", " UNION {?s ?p ?o}", "", "", "}"),
    "optionals": ("SELECT * { ?s ?p ?o", " OPTIONAL {?s <urn:t:p> ?o}", "", "", "}"),
    "minuses": ("SELECT * { ?s ?p ?o", " MINUS {?s <urn:t:p> ?o}", "", "", "}"),
    "triples": ("SELECT * { ?s ?p ?o", ". ?s ?p ?o", "", "", "}"),
    "nodes": ("SELECT * { ?s ?p ", "[ ?p ", "1", " ]", "}"),
    "lists": ("SELECT * { ?s ?p ", "(", "1", ")", "}"),
    "long list": ("SELECT * { ?s ?p (", "1 ", "", "", ")}"),
    "sequence": ("SELECT * { ?s <urn:t:p>", "/<urn:t:p>", "", "", " ?o }"),
    "alternatives": ("SELECT * { ?s <urn:t:p>", "|<urn:t:p>", "", "", " ?o }"),
    "negated": ("SELECT * { ?s !(<urn:t:p>", "|^<urn:t:p>", "", "", ") ?o }"),
    "inverses": ("SELECT * { ?s ", "^(", "<urn:t:p>", ")", " ?o }"),
    "subqueries": ("SELECT * ", "{ SELECT * ", "{ ?s ?p ?o }", "}", ""),
    "quoted": ("SELECT * { ?s ?p ", "<<( ?s ?p ", "?o", " )>>", "}"),
    "code points": ("SELECT * { ?s ?p ?b FILTER(", "\\u0021", "?b", "", ") }"),
    "values": ("SELECT * { VALUES ?x { ", "1 ", "", "", "} }"),
    "projection": ("SELECT ", "(1 AS ?x) ", "", "", "{ ?s ?p ?o }"),
    "prefixes": ("", "PREFIX a: <urn:a> ", "SELECT * { ?s ?p ?o }", "", ""),
    "comments": ("", "# ' ( {\n", "SELECT * { ?s ?p ?o }", "", ""),
    "escapes": ("SELECT * { ?s ?p ", '"\\', '"', "", " }"),
    "names": ("SELECT * { ?s ", "a.", ":b ?o }", "", ""),
}
"""Texts by how they are repeated: before, again and again, the middle, again and again, after."""

REPEATED_RDF = {
    "text/turtle": (
        ("<urn:t:s> <urn:t:p> ", "[ <urn:t:p> ", "1", " ]", " ."),
        ("<urn:t:s> <urn:t:p> ", "( ", "1", " )", " ."),
        ("<urn:t:s> <urn:t:p> ", "<<( <urn:t:s> <urn:t:p> ", "1", " )>>", " ."),
        ("<urn:t:s> <urn:t:p> ", "<< <urn:t:s> <urn:t:p> ", "1", " >>", " ."),
        ("<urn:t:s> <urn:t:p> 1 ", "{| <urn:t:p> 1 ", "", "|}", " ."),
        ("", "@prefix a: <urn:a:> . ", "a:b a a:c .", "", ""),
        ("<urn:t:s> <urn:t:p> '", "\\'", "", "", "' ."),
        ("", "<urn:t:s> <urn:t:p> 1 . ", "", "", ""),
        ("", '"""\\"', "", "", ""),
    ),
    "application/n-triples": (
        ("<urn:t:s> <urn:t:p> ", "<<( <urn:t:s> <urn:t:p> ", "<urn:t:o>", " )>>", " .\n"),
        ("", '<urn:t:s> <urn:t:p> "a" .\n', "", "", ""),
        ('<urn:t:s> <urn:t:p> "', "\\u0041", "", "", '" .'),
    ),
    "application/ld+json": (
        ("", '{"urn:t:p":', "1", "}", ""),
        ('{"urn:t:p":', "[", "1", "]", "}"),
        ('{"urn:t:p":', '{"@list":[', "1", "]}", "}"),
        ("", '{"@context":{"a":"urn:a"},"a":', "1", "}", ""),
        ('{"@context":[', '{"a":"urn:a"},', '{}],"a":1', "", "}"),
        ('{"@context":{"a":{"@id":"urn:a","@context":{"b":"urn:b"}}},"a":[', '{"b":1},', "{}", "", "]}"),
        ('{"@graph":[', '{"@id":"urn:t:s","urn:t:p":1},', "{}", "", "]}"),
        ('{"@context":"http://127.0.0.1:9/', "a", '","a":1', "", "}"),
    ),
    "application/rdf+xml": (
        ("<R>", "<t:A><t:p>", "", "</t:p></t:A>", "</rdf:RDF>"),
        ("<R>", "<t:A/>", "", "", "</rdf:RDF>"),
        ("<R><t:A><t:p rdf:parseType='Literal'>", "<t:b>", "", "</t:b>", "</t:p></t:A></rdf:RDF>"),
        ("<R><t:A><t:p rdf:parseType='Collection'>", "<t:A/>", "", "", "</t:p></t:A></rdf:RDF>"),
        ('<!DOCTYPE r [<!ENTITY a0 "aaaaaaaaaa">', '<!ENTITY a1 "&a0;&a0;&a0;&a0;">', "]><R>&a1;", "", "</rdf:RDF>"),
        ("<R><t:A ", 't:a="1" ', "/>", "", "</rdf:RDF>"),
        ("<!--", "<a>", "--><R>", "", "</rdf:RDF>"),
        ("<R><t:A rdf:about='", "&amp;", "'/>", "", "</rdf:RDF>"),
    ),
}
ROOT = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:t="urn:t:">'

Text = Callable[[], str]


class Hostile:
    """Draws texts; the same seed draws the same ones."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)

    def some(self, largest: float) -> int:
        """A number, each order of magnitude as likely as another."""
        return int(largest ** self.draw.random())

    def mostly(self, text: str) -> str:
        """The text, or at times with parts cut out, doubled or put in; never too long."""
        for _ in range(self.draw.choice((0, 0, 0, 1, 2))):
            at, size = self.draw.randrange(len(text) + 1), self.some(40)
            put = self.draw.choice(("", self.draw.choice(ODD), text[at : at + size] * 3))
            text = text[:at] + put + text[at + size * self.draw.randrange(2) :]
        return text[:LARGEST]

    def repeated(self, parts: tuple[str, ...]) -> str:
        before, again, middle, back, after = parts
        most = (LARGEST - len(before + middle + after)) // max(1, len(again + back))
        many = min(self.some(MANY if self.draw.random() < LARGE_SHARE else FEW), most)
        closed = many if self.draw.random() < 0.8 else self.some(many + 1)
        return f"{before}{again * many}{middle}{back * closed}{after}"

    # SPARQL

    def query(self) -> str:
        """A query, now and then no more than nearly one."""
        kind = self.draw.random()
        if kind < 0.6:
            return self.mostly(self.repeated(self.draw.choice(list(REPEATED.values()))))
        form = self.draw.choice(("SELECT *", "SELECT ?s", "ASK", "CONSTRUCT { ?s ?p ?o }", "SELECT (COUNT(?s) AS ?n)"))
        tail = self.draw.choice(
            ("", "", " ORDER BY ?s", f" LIMIT {self.number()}", " GROUP BY ?s", f" OFFSET {self.number()}")
        )
        return self.mostly(f"{form} WHERE {self.group(self.draw.randrange(4))}{tail}")

    def continuous(self) -> str:
        """A query over a stream in one of the dialects."""
        whole = self.query()
        _, _, body = whole.partition("{")
        clause = self.draw.choice(
            (
                "SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT2S STEP PT1S] WHERE { WINDOW <urn:w> {%s }",
                "REGISTER QUERY q AS SELECT * FROM STREAM <urn:s> [RANGE 2s STEP 1s] WHERE {%s",
                "SELECT * WHERE { STREAM <urn:s> [RANGE 2s SLIDE 1s] {%s }",
                "SELECT * FROM NAMED STREAM <urn:s> [NOW - 2 S SLIDE 1 S] WHERE {%s",
                "SELECT * FROM STREAM <urn:s> [" + "RANGE " * self.some(50) + f"{self.number()}s] WHERE {{%s",
            )
        )
        return self.mostly(clause.replace("%s", body))

    def update(self) -> str:
        """A SPARQL Update."""
        kind = self.draw.randrange(5)
        if kind == 0:
            parts = self.draw.choice(list(REPEATED.values()))
            return self.mostly(self.repeated(parts).replace("SELECT *", "DELETE { ?s ?p ?o } WHERE", 1))
        if kind == 1:
            body = self.repeated(self.draw.choice(REPEATED_RDF["text/turtle"]))
            return self.mostly(f"INSERT DATA {{ {body} }}")
        if kind == 2:
            return self.mostly("INSERT DATA { <urn:t:s> <urn:t:p> 1 } ; " * self.some(100))
        data = " . ".join(f"{self.term()} <urn:t:p> {self.term()}" for _ in range(self.some(10)))
        where = self.draw.choice(
            (f"DELETE WHERE {{ {data} }}", f"INSERT DATA {{ {data} }}", f"DELETE DATA {{ {data} }}")
        )
        return self.mostly(where)

    def group(self, depth: int) -> str:
        parts = [self.part(depth) for _ in range(self.draw.randrange(1, 4))]
        return f"{{ {' '.join(parts)} }}"

    def part(self, depth: int) -> str:
        kind = self.draw.randrange(9) if depth else 0
        if kind < 3:
            return f"{self.term()} {self.path(depth)} {self.term()} ."
        inner = self.group(depth - 1)
        return (
            f"OPTIONAL {inner}",
            f"{inner} UNION {inner}",
            f"MINUS {inner}",
            f"FILTER({self.expression(depth)})",
            f"BIND({self.expression(depth)} AS ?x{self.draw.randrange(9)})",
            f"VALUES ?s {{ {self.term()} UNDEF }}",
        )[kind - 3]

    def path(self, depth: int) -> str:
        if depth == 0 or self.draw.random() < 0.5:
            return self.draw.choice(("?p", "a", f"<{self.draw.choice(NAMES)}>", "<urn:t:p>"))
        inner = self.path(depth - 1).replace("?p", "a")
        return self.draw.choice(
            (f"({inner}/{inner})", f"({inner}|^{inner})", f"({inner})*", f"!(a|{inner})", f"^{inner}")
        )

    def expression(self, depth: int) -> str:
        if depth == 0:
            return self.term()
        one, two = self.expression(depth - 1), self.expression(depth - 1)
        sign = self.draw.choice(("+", "-", "*", "/", "=", "<", "||", "&&"))
        return self.draw.choice(
            (
                f"{one} {sign} {two}",
                f"({one}){sign}{two}",
                f"!{one}",
                f"{self.draw.choice(FUNCTIONS)}({one})",
                f"IF({one}, {two}, {one})",
                f"REGEX({one}, '{self.draw.choice(REGULAR)}')",
                f"{one} IN ({two}, {one})",
                f"EXISTS {self.group(0)}",
                f"CONCAT({one}, {two})",
            )
        )

    def term(self) -> str:
        text = self.draw.choice(("a", "b\\n", "é", "'", ""))
        return self.draw.choice(
            (
                "?s",
                "?o",
                "?x",
                f"<{self.draw.choice(NAMES)}>",
                f'"{text}"',
                f'"{text}"@en',
                self.number(),
                "_:b",
                "[]",
                "true",
            )
        )

    def number(self) -> str:
        return self.draw.choice(NUMBERS)

    # RDF and JSON

    def graph(self) -> tuple[str, str]:
        """A media type and a body."""
        kind = self.draw.choice(list(REPEATED_RDF))
        if self.draw.random() < 0.3:
            kind = "text/turtle"
            triples = [f"{self.term()} <urn:t:p> {self.term()} ." for _ in range(self.some(30))]
            return kind, self.mostly(" ".join(triples).replace("?", "urn:t:"))
        body = self.repeated(self.draw.choice(REPEATED_RDF[kind])).replace("<R>", ROOT)
        return kind, self.mostly(body)

    def json(self) -> str:
        """JSON, its objects and arrays in each other up to the largest depth."""
        if self.draw.random() < 0.5:
            opening, closing = self.draw.choice((("[", "]"), ('{"a":', "}"), ('[{"query":', "}]")))
            return self.mostly(self.repeated(("", opening, self.number(), closing, "")))
        return self.mostly(json.dumps(self.value(3)))

    def value(self, depth: int) -> object:
        """A value for JSON."""
        kind = self.draw.randrange(8)
        if depth == 0 or kind < 4:
            return self.draw.choice((None, True, 0, -1, 1e300, 2**63, "", "x", self.draw.choice(ODD), "Student"))
        if kind < 6:
            return [self.value(depth - 1) for _ in range(self.draw.randrange(4))]
        keys = (
            "query",
            "dialect",
            "semantics",
            "static",
            "t0",
            "engine",
            "add",
            "remove",
            "by",
            "subject",
            "stream",
            "source",
        )
        return {self.draw.choice(keys): self.value(depth - 1) for _ in range(self.draw.randrange(4))}

    # HTTP

    def head(self) -> bytes:
        """The head of a request, right or wrong, in at most ``LARGEST`` bytes and a little more."""
        method = self.draw.choice(
            ("GET", "POST", "PUT", "DELETE", "PATCH", "get", "G\0T", "OPTIONS", "A" * self.some(200))
        )
        path = self.draw.choice(
            ("/health", "/", "*", "/channels/x", "/data", "/queries", "/%00", "/..", "http://e/", "")
        )
        if self.draw.random() < 0.3:
            path += "?" + self.draw.choice(("a", "a=1&", "%41", "subject=<<(", "values=(", "page=9")) * self.some(9_000)
        fields = [
            f"{self.draw.choice(('a', 'Host', 'Content-Length', 'X' * 50, 'Cookie', 'Authorization'))}: {self.value(0)}"
        ]
        fields *= self.some(2_000)
        lines = [
            f"{method} {path} HTTP/{self.draw.choice(('1.1', '1.1', '1.0', '9.9', 'x'))}",
            "Host: localhost",
            *fields,
        ]
        end = self.draw.choice(("\r\n", "\r\n", "\r\n", "\n", "\r"))
        whole = end.join((*lines, "", "")).encode(errors="replace")
        return whole[: LARGEST + 2_000]
