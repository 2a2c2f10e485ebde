"""The request of a client: a query's text and how to answer it, read from JSON and understood."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyoxigraph as ox

from streamgauge.formats.bounds import SERVED, BoundError, check_turtle
from streamgauge.formats.canonical import to_triple
from streamgauge.formats.fields import FieldError, decode
from streamgauge.model.engine import Engine
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.model.terms import Triple
from streamgauge.query import detect, dialects, parse
from streamgauge.query.text import check_bounds
from streamgauge.semantics.profiles import profile
from streamgauge.servers.queries.limits import QueryLimitError, QueryLimits
from streamgauge.servers.queries.sessions import fixed, profile_for


class WishError(ValueError):
    """A wish that cannot be read; the sentence names the field."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A query as a client asks it: ``static`` is Turtle, ``semantics`` a profile's name or all fields, times in ms.

    ``advance`` ``wall`` lets time pass by the service's clock.
    """

    query: str
    dialect: str | None = None
    semantics: Semantics | str | None = None
    lateness: int | None = None
    t0: int | None = None
    engine: str | None = None
    static: str = ""
    advance: str | None = None


def read_wish(data: object) -> Wish:
    """The wish of a JSON object; WishError names the field."""
    if not isinstance(data, Mapping):
        raise WishError("a query is asked by its text, or by a JSON object with the field query")
    try:
        plain = {name: value for name, value in data.items() if name != "semantics"}
        wish = replace(decode(Wish, plain), semantics=_named(data.get("semantics")))
    except FieldError as error:
        raise WishError(str(error)) from error
    for field, value, known in (("dialect", wish.dialect, dialects()), ("advance", wish.advance, ("wall",))):
        if value is not None and value not in known:
            raise WishError(f"{field} is {value!r}: expected one of {', '.join(known)}")
    return wish


def understand(wish: Wish, engine: Engine, limits: QueryLimits) -> tuple[ContinuousQuery, Semantics]:
    """The query with its own static data, and its semantics; QueryError, WishError or LimitError."""
    if len(wish.query.encode()) > limits.query_text:
        raise QueryLimitError(f"the query is longer than {limits.query_text} bytes: ask something shorter")
    check_bounds(wish.query, SERVED)
    dialect = wish.dialect or detect(wish.query)
    query = parse(wish.query, dialect).with_static(read_static(wish.static, limits.static_triples))
    return query, _semantics(wish, dialect, engine)


def read_static(text: str, limit: int) -> tuple[Triple, ...]:
    """The triples of Turtle or N-Triples text; WishError names the line, LimitError when they are too many."""
    found = list[Triple]()
    try:
        check_turtle(text)
        for quad in ox.parse(text, format=ox.RdfFormat.TURTLE):
            found.append(to_triple(quad))
            if len(found) > limit:
                raise QueryLimitError(f"more than {limit} static triples: bring fewer")
    except BoundError as error:
        raise WishError(f"static: {error}") from error
    except SyntaxError as error:
        raise WishError(f"static, line {error.lineno}: not Turtle: {error.msg}") from error
    return tuple(found)


def _named(semantics: object) -> Semantics | str | None:
    if semantics is None or isinstance(semantics, str):
        return semantics
    if not isinstance(semantics, Mapping):
        raise WishError(f"semantics is {semantics!r:.80}: expected a profile's name or an object of its fields")
    return decode(Semantics, semantics, "semantics")


def _semantics(wish: Wish, dialect: str, engine: Engine) -> Semantics:
    asked = wish.semantics or profile_for(dialect, engine)
    semantics = profile(asked) if isinstance(asked, str) else asked
    if wish.lateness is not None:
        if wish.lateness < 0:
            raise WishError(f"lateness is {wish.lateness}: expected ms, at least 0")
        semantics = replace(semantics, lateness=wish.lateness)
    return semantics if wish.t0 is None else fixed(semantics, wish.t0)
