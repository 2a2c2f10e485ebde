"""A workload's facts as data sets that say their times: what ``generate --annotated`` writes."""

from collections.abc import Iterable, Iterator
from itertools import count, product
from pathlib import Path

from streamgauge.formats.streams import FormatError
from streamgauge.model.element import StreamElement
from streamgauge.model.fact import Fact
from streamgauge.model.obstacles import obstacle
from streamgauge.model.terms import Triple
from streamgauge.servers.fragments.annotations import method, methods, named
from streamgauge.servers.fragments.labels import Label, Style

ALL = "all"
LABELS = (Label.EXPIRATION, Label.INTERVAL)
"""An instant says when a fact held, not for how long: facts of streams have no use for it."""


def styles(asked: str) -> list[Style]:
    """Every method of a list (``graphs,singleton``, or ``all``) under both labels; UnknownMethodError."""
    chosen = methods() if asked == ALL else [name.strip() for name in asked.split(",")]
    return [Style(name, label) for name, label in product(map(named, chosen), LABELS)]


def write(
    elements: Iterable[StreamElement], static: Iterable[Triple], folder: Path, given: Iterable[Style], begins: int
) -> list[Path]:
    """``METHOD-LABEL.nq`` for each style; the stream's time 0 is ``begins`` (ms since 1970).

    An interval label has every fact of the stream, an expiration the latest of each element's subjects, as the paper
    has it. FormatError for a file that cannot be written.
    """
    still = [Fact(triple) for triple in static]
    facts = [fact for element in elements for fact in held(element, begins)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [_file(folder, style, still, facts) for style in given]
    except OSError as error:
        raise FormatError(f"{folder}: could not be written: {obstacle(error)}") from error


def held(element: StreamElement, begins: int) -> Iterator[Fact]:
    """The facts of an element, and from when until when they hold."""
    final = None if element.until is None else begins + element.until
    return (Fact(triple, begins + element.time, final) for triple in element.added)


def latest(facts: Iterable[Fact]) -> list[Fact]:
    """The last fact of each subject and predicate: a newer version takes the place of an older one (section 5.1)."""
    return list({fact.triple[:2]: fact for fact in facts}.values())


def _file(folder: Path, style: Style, still: list[Fact], facts: list[Fact]) -> Path:
    numbers = count(1)
    said = facts if style.label is Label.INTERVAL else latest(facts)
    quads = method(style.method).annotate([*still, *said], style, lambda _shared: str(next(numbers)))
    path = folder / f"{style.method}-{style.label}.nq"
    path.write_text("".join(f"{' '.join(filter(None, quad))} .\n" for quad, _ in quads), encoding="utf-8")
    return path
