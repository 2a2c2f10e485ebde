"""Plain SPARQL 1.1 text to algebra: pyoxigraph validates and locates, ``reader`` says what the text means."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any, Final

import pyoxigraph as ox

from streamgauge.formats.bounds import LOCAL, TextBounds
from streamgauge.model import algebra as al
from streamgauge.model.algebra import QueryForm
from streamgauge.model.terms import Term
from streamgauge.query.reader import read_query
from streamgauge.query.stamps import FUNCTION, TIMESTAMP, WORD, stamped
from streamgauge.query.text import Prologue, QueryError, Token, blank, check_bounds, read_prologue, refusal, tokens
from streamgauge.query.traversal import every_expression, every_pattern, expressions

_AFTER: Final = ("HAVING", "ORDER", "LIMIT", "OFFSET", "VALUES")


def unaliased(text: str) -> str:
    """The text for pyoxigraph, which refuses ``GROUP BY (?x AS ?n)`` (rule GroupCondition): with ``?n`` at its place.

    A query is right with the key ``?n`` if and only if it is right with the alias; every other character stays.
    """
    found = tokens(text)
    for opening, closing in _keys(found):
        text = blank(text, found[opening].start, found[closing - 1].start)
        text = blank(text, found[closing].start, found[closing].end)
    return text


def _keys(found: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """The places of the parentheses around variables that have an alias in a GROUP BY."""
    for place, (one, two) in enumerate(pairwise(found)):
        if one.says("GROUP") and two.says("BY"):
            yield from _aliases(found, place + 2)


def _aliases(found: Sequence[Token], place: int) -> Iterator[tuple[int, int]]:
    """The aliases of one GROUP BY, whose keys begin at a place."""
    opened: list[int] = []
    while place < len(found) and (opened or not (found[place].text == "}" or found[place].says(*_AFTER))):
        if found[place].text == "(":
            opened.append(place)
        elif found[place].text == ")" and opened:
            first = opened.pop()
            if not opened and _is_alias(found[first + 1 : place]):
                yield first, place
        place += 1


def _is_alias(inside: Sequence[Token]) -> bool:
    """Whether tokens are ``?x AS ?n``, the variable in parentheses or not."""
    plain = [token for token in inside[:-2] if token.text not in "()"]
    return len(inside) > 2 and inside[-2].says("AS") and len(plain) == 1 and plain[0].kind == "variable"


_UPDATES: Final = ("INSERT", "DELETE", "LOAD", "CLEAR", "CREATE", "DROP", "COPY", "MOVE", "ADD", "WITH")
_REFUSED: Final = {
    "SERVICE": "SERVICE asks another server; bring its data in as static data instead",
    "DESCRIBE": "DESCRIBE has no defined answer; write a CONSTRUCT",
    "LATERAL": "LATERAL is not SPARQL 1.1; write a subquery",
    "FROM": "FROM names data to load: bring it beside the query as static data and leave this out, or name a stream",
}
_SEQUENCES: Final = ("SEQ", "OPTIONALSEQ", "EQUALS", "EQUALSOPTIONAL", "GETDURATION", "GETSTARTTIME", "GETENDTIME")
_PARSE_ONLY: Final = {"use_default_graph_as_union": True, "default_graph": ox.NamedNode("urn:streamgauge:none")}
"""Arguments that pyoxigraph refuses together once a text is parsed, before its planner: that takes n^3 for n joins."""

_NEAR: Final = "this does not belong here, or something just before it is missing"
_BELOW: Final = " or "


def parse_sparql(text: str, base: str | None = None, bounds: TextBounds = LOCAL) -> QueryForm:
    """The algebra of a SPARQL 1.1 SELECT, ASK or CONSTRUCT; QueryError says where it is wrong or refused.

    ``base`` is that of relative IRIs where the text declares none; without both they are refused.
    Beyond SPARQL it knows ``timestamp(?s, ?p, ?o)``, as C-SPARQL's function by IRI or by that word. ``bounds`` say how
    long and deep the text may be.
    """
    check_bounds(text, bounds)
    words = [first for first, second in pairwise(tokens(text)) if first.says(TIMESTAMP) and second.text == "("]
    plain = reduce(lambda before, word: blank(before, word.start, word.end, WORD), words, text)
    for token in tokens(plain):
        if token.says("TRUE", "FALSE"):  # keywords, in any case; pyoxigraph knows them in lower case only
            plain = blank(plain, token.start, token.end, token.text.lower())
    try:
        return _parsed(plain, base)
    except QueryError as error:
        raise error.within(text) from None
    except RecursionError:
        raise refusal("the query is nested too deeply: write it flatter", text, 0) from None


def _parsed(text: str, base: str | None) -> QueryForm:
    found = tokens(text)
    prologue = read_prologue(text, found, default=base)
    _refuse(text, found, prologue.end)
    for token in found[prologue.end :]:
        if token.kind in ("iri", "name"):
            prologue.iri(token)
    _validate(text, prologue)
    result = read_query(text, found, prologue)
    _check_functions(result, text, found, prologue)
    try:
        stamped(result)
    except ValueError as error:
        names = [token for token in found[prologue.end :] if token.kind in ("iri", "name")]
        first = next(token for token in names if f"<{prologue.iri(token)}>" in (FUNCTION, WORD))
        raise refusal(str(error), text, first.start) from None
    return result


def _refuse(text: str, found: Sequence[Token], first: int) -> None:
    if first >= len(found):
        raise refusal("there is no query here: write a SELECT, ASK or CONSTRUCT", text, len(text.rstrip()))
    if found[first].says(*_UPDATES):
        word = found[first].text.upper()
        what = f"{word} is an update: write a SELECT, ASK or CONSTRUCT; streams change the data"
        raise refusal(what, text, found[first].start)
    refuse_sequences(text)
    for token in found[first:]:
        if token.says(*_REFUSED):
            raise refusal(_REFUSED[token.text.upper()], text, token.start)
        if token.text == "$" and text.startswith("${", token.start):
            raise refusal("a parameter ${...} has no value: fill it first", text, token.start)


def refuse_sequences(text: str) -> None:
    """Raises QueryError at an operator or function of EP-SPARQL (Anicic et al., WWW 2011)."""
    for token in tokens(text):
        if token.says(*_SEQUENCES):
            what = f"{token.text} is EP-SPARQL's: sequences of events are not supported; compare timestamp() of triples"
            raise refusal(what, text, token.start)


def _validate(text: str, prologue: Prologue) -> None:
    """QueryError for what is no SPARQL; functions are another matter."""
    try:
        _ask_pyoxigraph(unaliased(text), prologue.default, _PARSE_ONLY)
    except SyntaxError as error:
        raise _located(text, str(error)) from None
    except (ValueError, OSError, RuntimeError) as error:
        if not set(_PARSE_ONLY) <= set(re.findall(r"\w+", str(error))):
            raise refusal(f"not SPARQL: {error}", text, 0) from None


def _ask_pyoxigraph(text: str, base: str | None, arguments: Mapping[str, Any]) -> None:
    functions: dict[ox.NamedNode, Any] = {ox.NamedNode(name[1:-1]): _never for name in (FUNCTION, WORD)}
    ox.Store().query(text, base_iri=base, custom_functions=functions, **arguments)


def _check_functions(result: QueryForm, text: str, found: Sequence[Token], prologue: Prologue) -> None:
    """QueryError for functions named by IRI that are no casts, or casts of more than one argument."""
    for name, count in sorted(set(_functions(result))):
        arguments = ", ".join(["1"] * count)
        try:
            _ask_pyoxigraph(f"ASK {{ FILTER({name}({arguments})) }}", None, {})
        except (ValueError, OSError, RuntimeError, SyntaxError) as error:
            raise _unsupported(text, found, prologue, str(error)) from None


def _functions(result: QueryForm) -> Iterator[tuple[Term, int]]:
    """The functions that are called by IRI, with how many arguments."""
    for pattern in every_pattern(result.pattern):
        for tree in expressions(pattern):
            for part in every_expression(tree):
                if isinstance(part, al.Call) and part.operator[0] == "<" and part.operator[-1] == ">":
                    yield part.operator, len(part.arguments)


def _never(*_: object) -> None:
    """A function that is only ever read, not asked."""


def _unsupported(text: str, found: Sequence[Token], prologue: Prologue, message: str) -> QueryError:
    """Pyoxigraph's refusal of a function, at the function."""
    names = [token for token in found[prologue.end :] if token.kind in ("iri", "name")]
    where = next((token.start for token in names if f"<{prologue.iri(token)}>" in message), 0)
    return refusal(f"{message[:1].lower()}{message[1:]}; use the built-ins of SPARQL 1.1", text, where)


_PAIRS: Final = {"{": "}", "(": ")"}
_OFTEN: Final = {
    "The SELECT contains a variable that is unbound": "SELECT names a variable that is unbound: it is neither in "
    "GROUP BY nor in an aggregate such as COUNT(?x)",
}
"""Messages of pyoxigraph about frequent mistakes, and the sentences in their place."""


def _unclosed(text: str) -> str | None:
    """Which bracket does not fit, where the brackets are what is wrong."""
    open_: list[Token] = []
    for token in tokens(text):
        if token.text in _PAIRS:
            open_.append(token)
        elif token.text in _PAIRS.values() and (not open_ or _PAIRS[open_.pop().text] != token.text):
            return f"the {token.text} {_place(text, token)} closes no bracket"
    if open_:
        return f"the {open_[-1].text} {_place(text, open_[-1])} is not closed: add {_PAIRS[open_[-1].text]}"
    return None


def _place(text: str, token: Token) -> str:
    before = text[: token.start]
    return f"of line {before.count(chr(10)) + 1}, column {token.start - before.rfind(chr(10))},"


def _located(text: str, message: str) -> QueryError:
    """The error of pyoxigraph's message about a text."""
    found = re.match(r"error at (\d+):(\d+): (?:expected )?(?:one of )?(.*)", message, re.DOTALL)
    if found is None:
        return QueryError(f"not SPARQL: {message}", text, 1, 1)
    line, column, expected = int(found.group(1)), int(found.group(2)), re.split(r", | \| ", found.group(3))
    told = [item for item in expected if " " in item and not item.startswith(("[", "'"))]
    words = [item for item in expected if re.fullmatch(r'[A-Za-z]+|"[^"]*"', item) and item not in _REFUSED]
    told = [_OFTEN.get(item, item) for item in told]
    hint = told[0] if told else f"expected {_BELOW.join(words[:8])}" if words else _NEAR
    hint = _unclosed(text) or hint
    return QueryError(f"not SPARQL 1.1: {hint}", text, line, column)
