"""A question: a query from text, file or value, its static data, and the semantics that it is asked under."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from streamgauge.engines import load
from streamgauge.formats.streams import read_triples
from streamgauge.model.engine import Engine
from streamgauge.model.mistake import MistakeError, obstacle
from streamgauge.model.query import ContinuousQuery, static_missing
from streamgauge.model.semantics import Semantics
from streamgauge.model.terms import Triple
from streamgauge.query import QueryError, detect, parse
from streamgauge.query.text import declared_prefixes
from streamgauge.semantics.profiles import profile
from streamgauge.servers.queries.sessions import fixed, profile_for
from streamgauge.workloads.parameters import duration

Query: TypeAlias = str | Path | ContinuousQuery
"""A query's text, the path of a file that has it, or the query itself."""

Static: TypeAlias = str | Path | Iterable[Triple] | None
"""Background data: an RDF file, or triples."""


class WatchError(MistakeError, ValueError):
    """A query or stream that cannot be watched; the sentence says what to do."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Under which terms queries are asked: engine by name, a semantics or a profile's name (``None``: the dialect's).

    ``lateness`` (ms or text as ``2s``) and ``t0`` (ms) replace the semantics' own.
    """

    engine: str = "live"
    semantics: Semantics | str | None = None
    static: Static = None
    lateness: int | str | None = None
    t0: int | None = None


@dataclass(frozen=True, slots=True)
class Understood:
    """A query by its name (``None`` when it is the only one), with its semantics and the prefixes that it declares."""

    name: str | None
    query: ContinuousQuery
    semantics: Semantics
    prefixes: Mapping[str, str] = field(default_factory=dict, hash=False)


def understand(queries: Query | Mapping[str, Query], terms: Terms) -> tuple[Understood, ...]:
    """Every query read, its static data beside it; WatchError, QueryError or FormatError say what is wrong."""
    static = _static(terms.static)
    engine = load(terms.engine)
    if not isinstance(queries, Mapping):
        return (_understand(None, queries, static, engine, terms),)
    if not queries:
        raise WatchError("there is no query to watch: name at least one")
    return tuple(_understand(name, query, static, engine, terms) for name, query in queries.items())


def _understand(
    name: str | None, query: Query, static: tuple[Triple, ...] | None, engine: Engine, terms: Terms
) -> Understood:
    asked, dialect, text = _read(query)
    if static is not None:
        asked = asked.with_static(static)
    elif asked.background and not asked.static:
        raise WatchError(static_missing(asked))
    return Understood(name, asked, _semantics(terms, dialect, engine), declared_prefixes(text))


def _read(query: Query) -> tuple[ContinuousQuery, str, str]:
    """The query, its dialect and its text, as far as it has one."""
    if isinstance(query, ContinuousQuery):
        return query, "rspql", ""
    text = query if isinstance(query, str) and "{" in query else _text(Path(query))
    dialect = detect(text)
    try:
        return parse(text, dialect), dialect, text
    except QueryError as error:
        raise error if text is query else WatchError(f"{query}, {error}") from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise WatchError(f"{path}: this query cannot be read: {obstacle(error)}") from error


def _static(static: Static) -> tuple[Triple, ...] | None:
    if static is None:
        return None
    return tuple(read_triples(static) if isinstance(static, str | Path) else static)


def _semantics(terms: Terms, dialect: str, engine: Engine) -> Semantics:
    asked = terms.semantics or profile_for(dialect, engine)
    semantics = profile(asked) if isinstance(asked, str) else asked
    if terms.lateness is not None:
        semantics = replace(semantics, lateness=_milliseconds(terms.lateness))
    return semantics if terms.t0 is None else fixed(semantics, terms.t0)


def _milliseconds(lateness: int | str) -> int:
    try:
        return duration(lateness)
    except ValueError as error:
        raise WatchError(f"lateness is {lateness!r}: {error}") from error
