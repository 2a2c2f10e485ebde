"""Doubts about a whole verdict, with their likely causes: data that was forgotten or misnamed."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

import pyarrow as pa

from streamgauge.formats.stream import SCHEMA, files
from streamgauge.formats.tables import batches
from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.run import Run
from streamgauge.model.verdict import Verdict
from streamgauge.query.graphs import reads

MAX_NAMED_IRIS = 3
"""Number of missing IRIs, and of streams, that a caution names."""

MAX_COMPARED_IRIS = 20_000
"""IRIs of the stream among which the nearest to a missing one is searched."""


def cautions(run: Run, verdict: Verdict, stream: Path) -> tuple[str, ...]:
    """Doubts about a whole verdict: no window expected rows, or no window received any, with the likely causes.

    The cause is then usually missing or misnamed data (static data, an IRI or prefix, the stream's name), not the
    engine. The stream table is read only if there is such a doubt.
    """
    due = [window for window in verdict.windows if window.due]
    expected = any(window.expected for window in due)
    received = any(window.actual for window in verdict.windows) or any(
        answer.added or answer.removed for answer in run.answers
    )
    if (expected and received) or (not verdict.windows and not run.answers):
        return ()
    terms = _Terms(stream, run.header.query)
    causes = tuple(_causes(run.header.query, terms))
    if expected:
        return (_silent(run), *causes)
    empty = "No report was due" if not due else f"Every one of {len(due):,} due reports expected nothing"
    side = "" if received else ", and every answer was empty" if run.answers else ", and nothing was answered"
    hints = causes or ("No pattern of the query matched: look at its constants and filters.",)
    return (f"{empty}{side}: this verdict says little about the engine.", *hints)


def _silent(run: Run) -> str:
    query = run.header.query
    what = "Every answer was empty" if run.answers else "Nothing was answered"
    streams = " and ".join(f"<{name}>" for name in dict.fromkeys(window.stream for window in query.windows))
    static = f", the {len(query.static):,} triples of static data" if query.static else ""
    return (
        f"{what} although rows were expected: was the engine given the stream {streams}{static} and this query's IRIs?"
    )


class _Terms:
    """The stream names and IRIs of a stream table and of static data; each column is read once."""

    def __init__(self, stream: Path, query: ContinuousQuery) -> None:
        names: set[str] = set()
        terms: dict[str, None] = {}
        columns = ("stream", "subject", "predicate", "object")
        schema = pa.schema([SCHEMA.field(name) for name in columns])
        if files(stream):
            for _, batch in batches(stream, schema):
                names.update(batch.column("stream").unique().to_pylist())
                # Properties first, as only the first IRIs are compared with a missing one, which is most often a
                # property.
                for name in ("predicate", "object", "subject"):
                    terms.update(dict.fromkeys(batch.column(name).unique().to_pylist()))
        for triple in query.static:
            terms.update(dict.fromkeys(triple))
        self.streams = names
        self.iris = {term for term in terms if term.startswith("<")}
        # Similarity is quadratic in the lengths; a stream of a million subjects would take minutes for one hint.
        self.some = [term for term in terms if term.startswith("<")][:MAX_COMPARED_IRIS]

    def nearest(self, iri: str) -> str | None:
        """The most similar IRI of the data: with the same local name, else by similarity of characters; or ``None``."""
        same = [iri_ for iri_ in self.some if _local(iri_) == _local(iri)]
        # 0.6 is difflib's own cutoff. An equal local name counts at any similarity: a wrong prefix is the usual
        # mistake.
        return next(iter(get_close_matches(iri, same or self.some, 1, 0.0 if same else 0.6)), None)


def _causes(query: ContinuousQuery, terms: _Terms) -> Iterator[str]:
    absent = [name for name in dict.fromkeys(window.stream for window in query.windows) if name not in terms.streams]
    if absent and terms.streams:
        there = " and ".join(f"<{name}>" for name in sorted(terms.streams)[:MAX_NAMED_IRIS])
        yield (
            f"Likely cause: the query reads the stream {' and '.join(f'<{name}>' for name in absent)}, and what was "
            f"recorded is {there}."
        )
    static = _lacks_static(query)
    if static:
        yield "Likely cause: the query reads static data and the run has none. Name it with --static (query.static)."
    missing = [iri for iri in dict.fromkeys(_constants(query.form.pattern)) if iri not in terms.iris]
    for iri in missing[:MAX_NAMED_IRIS]:
        near = terms.nearest(iri)
        beside = "" if query.static else ", and there is no static data"
        hint = f"; the nearest that is there is {near}" if near else ""
        yield f"Likely cause: {iri} of the query is in no triple of the stream{beside}{hint}."


def _lacks_static(query: ContinuousQuery) -> bool:
    """Whether patterns read missing static data: a graph of FROM, or the default graph where all windows are named."""
    if query.static:
        return False
    named = {f"<{window.name}>" for window in query.windows if window.name is not None}
    outside = len(named) == len(query.windows) and None in reads(query.form)
    return bool(query.background) or outside


def _local(iri: str) -> str:
    return iri[1:-1].replace("#", "/").replace(":", "/").rpartition("/")[2].casefold()


def _constants(pattern: al.Pattern) -> Iterator[str]:
    """The IRIs that every solution needs: not those of OPTIONAL, MINUS, UNION, VALUES, filters and paths."""
    match pattern:
        case al.BGP(patterns=triples):
            for triple in triples:
                parts: Sequence[object] = (triple.subject, triple.predicate, triple.object)
                yield from (part for part in parts if isinstance(part, str) and part.startswith("<"))
        case al.Join(left=left, right=right):
            yield from _constants(left)
            yield from _constants(right)
        case al.LeftJoin(left=left) | al.Minus(left=left):
            yield from _constants(left)
        case _:
            inner = getattr(pattern, "pattern", None)
            if inner is not None:
                yield from _constants(inner)
