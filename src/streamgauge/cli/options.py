"""Options that several commands take: parameters, durations, names, one's own data, ontologies; how words are read."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from streamgauge.model.mistake import MistakeError
from streamgauge.model.own_data import OWN_DATA, OWN_DATA_NAMES
from streamgauge.model.phrases import meant, spelled
from streamgauge.workloads.parameters import duration
from streamgauge.workloads.parameters import instant as to_instant

if TYPE_CHECKING:
    from streamgauge.formats.streams import Reading
    from streamgauge.model.query import ContinuousQuery
    from streamgauge.reasoning import Rules
    from streamgauge.reasoning.ontology import Extent


_MASTER: Final = re.compile(r"local(\[[^\]]+\])?|local-cluster\[[^\]]+\]|yarn|(spark|k8s|sc)://.+")


def known_master(master: str | None) -> str | None:
    """The Spark master as it is; BadParameter, before any work, for an address of a form that Spark does not know."""
    if master is not None and not _MASTER.fullmatch(master):
        raise typer.BadParameter(
            f"{master!r} is not a Spark master: write local[*], local[4], yarn, spark://HOST:7077, k8s://URL or sc://HOST"
        )
    return master


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Master = Annotated[str | None, typer.Option(help="Spark master, local[*] unless given.", callback=known_master)]
Parameters = Annotated[
    list[str] | None, typer.Option("--set", "-D", metavar="NAME=VALUE", help="A query parameter: -D TEMP=50.")
]
"""The option with a query's parameters."""


def values(define: Sequence[str] | None) -> dict[str, str]:
    """The parameters by name; BadParameter for an item that is not NAME=VALUE."""
    return dict(_pair(item) for item in define or ())


def _pair(item: str) -> tuple[str, str]:
    name, equals, value = item.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{item!r}: write NAME=VALUE", param_hint="-D")
    return name, value


@contextmanager
def naming(file: str | Path | None) -> Iterator[None]:
    """A query's error carries the name of its file."""
    from streamgauge.query import QueryError

    try:
        yield
    except QueryError as error:
        if file is None:
            raise
        raise MistakeError(f"{'standard input' if str(file) == '-' else file}, {error}") from error


def tell_notes(query: ContinuousQuery) -> None:
    """Say on standard error what was taken for granted when a query was read."""
    for note in query.notes:
        tell_note(note)


def milliseconds(value: str | None, option: str | None = None) -> int | None:
    """The ms of a duration, ``None`` for none; BadParameter (of that option) otherwise.

    A number without a unit is ms, and the user is told so.
    """
    if value is None:
        return None
    number = _read(value, option)
    tell_unit(value, option)
    return number


def seconds(value: str, option: str) -> float:
    """The seconds of a duration; BadParameter, and what the user is told, as above."""
    return (milliseconds(value, option) or 0) / 1000


def checked_duration(param: typer.CallbackParam, value: str | None) -> str | None:
    """The text of a duration with its unit, for an option's callback; BadParameter, and what is told, as above."""
    ms = milliseconds(value, param.opts[0] if param.opts else None)
    return None if ms is None else f"{ms}ms"


def instant(value: str | None, option: str = "--t0") -> int | None:
    """A point of a stream's time in ms: ms, a duration since time 0, or a date; BadParameter otherwise."""
    return None if value is None else _read(value, option, to_instant)


WINDOWS: Final = "windows"
"""How far time comes: until all windows that hold something have closed."""


def horizon_time(value: str | None) -> int | None:
    """How far time comes, ms, as ``instant`` has it; what the user is told as by ``milliseconds``."""
    time = instant(value, "--advance-to")
    if value is not None:
        tell_unit(value, "--advance-to")
    return time


def _read(value: str, option: str | None, read: Callable[[object], int] = duration) -> int:
    try:
        return read(value)
    except ValueError as error:
        raise typer.BadParameter(f"{value!r}: {error}", param_hint=option) from error


def filled(file: str, define: Sequence[str]) -> str:
    """The query of a file (``-`` for standard input), its parameters filled in from ``NAME=VALUE``; MistakeError."""
    from streamgauge.formats.files import read_text
    from streamgauge.query import QueryError, fill

    template = sys.stdin.read() if file == "-" else read_text(Path(file))
    try:
        return fill(template, values(define))
    except ValueError as error:
        raise MistakeError(f"{file}, {error}" if isinstance(error, QueryError) else f"{file}: {error}") from error


def tell_unit(value: str, option: str | None) -> None:
    """Say on standard error that a duration without a unit is read as ms."""
    text = value.strip()
    if text.isdecimal() and int(text):
        where = f"{option} {text}" if option else text
        typer.echo(f"streamgauge: note: {where} is read as {text} ms: write {text}ms, or {text}s for seconds", err=True)


Known: TypeAlias = Callable[[], Iterable[str]]
"""The names there are, found when they are asked for."""


def chosen(name: str, known: Iterable[str], option: str | None = None) -> str:
    """The known name that is written so in any case; BadParameter (of that option) lists the names there are."""
    names = list(known)
    if (name_ := spelled(name, names)) is None:
        message = f"{name!r}: choose from {', '.join(names)}{meant(name, names)}"
        raise typer.BadParameter(message, param_hint=option)
    return name_


def one_of(known: Known, *declared: str, help: str) -> Any:  # noqa: A002
    """An option that takes one of these names, in any case; others are refused when words are read."""

    def checked(value: str | None) -> str | None:
        return None if value is None else chosen(value, known())

    return typer.Option(*declared, callback=checked, autocompletion=completed(known), metavar="NAME", help=help)


def one_named(known: Known, *declared: str, help: str) -> Any:  # noqa: A002
    """An option that takes one of these names; others are refused where the name is used."""
    return typer.Option(*declared, autocompletion=completed(known), metavar="NAME", help=help)


def completed(known: Known) -> Callable[[str], list[str]]:
    """How a shell completes such a name."""

    def begun(incomplete: str) -> list[str]:
        return [name for name in known() if name.startswith(incomplete)]

    return begun


def semantics_names() -> Iterable[str]:
    """The names of the profiles of semantics, loaded on use."""
    from streamgauge.semantics.profiles import PROFILES

    return PROFILES


def engine_names() -> Iterable[str]:
    """The names of the engines that can be loaded."""
    from streamgauge.engines import names

    return names()


def workload_names() -> Iterable[str]:
    """The names of the workloads that can be generated."""
    from streamgauge.workloads import names

    return names()


def dialect_names() -> Iterable[str]:
    """The names of the query dialects, loaded on use."""
    from streamgauge.query import dialect_names

    return dialect_names()


def sparql_versions() -> Iterable[str]:
    """The versions of SPARQL that a query may be read by."""
    from streamgauge.query import VERSIONS

    return VERSIONS


SparqlOption = Annotated[
    str | None, one_of(sparql_versions, "--sparql", help="1.1 or 1.2, where both differ; 1.2 unless the text tells.")
]


def strategy_names() -> Iterable[str]:
    """The names of the broker's strategies of notification."""
    from streamgauge.servers.broker.strategies import strategies

    return strategies()


def method_names() -> Iterable[str]:
    """The methods of annotating facts with time."""
    from streamgauge.servers.fragments.annotations import methods

    return methods()


def rule_names() -> Iterable[str]:
    """The published rule sets."""
    from streamgauge.papers.rules import names

    return names()


OwnData: TypeAlias = Mapping[str, str | None]
"""The options of one's own data by their names, as far as they were named."""

NO_OPTIONS: Final[OwnData] = {}


def own_data(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameter ``own`` is the options of one's own data, each of them an option of the command."""
    signature = inspect.signature(command, eval_str=True)

    @wraps(command)
    def commanded(**options: Any) -> None:
        command(**{name: value for name, value in options.items() if name not in OWN_DATA_NAMES}, own=options)

    options = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                str | None, typer.Option(metavar=option.metadata["metavar"], help=option.metadata["description"])
            ],
        )
        for option in OWN_DATA
    ]
    plain = list(signature.parameters.values())
    place = list(signature.parameters).index("own")
    return with_parameters(commanded, [*plain[:place], *options, *plain[place + 1 :]])


def with_parameters(command: Callable[..., None], parameters: Iterable[inspect.Parameter]) -> Callable[..., None]:
    """A command around another one, with these parameters for its options and arguments."""
    keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    command.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in keywords}
    del command.__wrapped__  # type: ignore[attr-defined]  # its signature would be found instead
    return command


def own_reading(text: str, lateness: int | None, own: OwnData, *, checked: bool = True) -> Reading:
    """How sources are read beside a query's text, whose prefixes count; notes go to standard error.

    ``checked``: terms are looked at although the format takes them as they are written.
    """
    from streamgauge.formats.streams import Reading
    from streamgauge.query.prologue import declared_prefixes

    named = {name: own[name] for name in OWN_DATA_NAMES if own.get(name) is not None}
    prefixes = declared_prefixes(text)
    return Reading(lateness=lateness, checked=checked, prefixes=prefixes, note=tell_note, **named)  # type: ignore[arg-type]


def tell_note(sentence: str) -> None:
    """Say on standard error what was taken for granted."""
    typer.echo(f"streamgauge: note: {sentence}", err=True)


Lenient = Annotated[
    bool, typer.Option("--ontology-lenient", help="List and leave out axioms outside OWL 2 RL, instead of refusing.")
]
SameAs = Annotated[bool, typer.Option("--same-as", help="Derive owl:sameAs (keys, functional properties) and use it.")]
Subsumption = Annotated[
    bool,
    typer.Option("--subsumption", help="A part of `p some C` is one of `p some D` if C is of D (scm-svf1, -svf2)."),
]
Beyond = Annotated[
    bool,
    typer.Option("--beyond-rl", help="Rules that OWL 2 RL has not: reflexive properties, owl:differentFrom derived."),
]
IMPORTED: Final = "imports {}, which is not fetched: give its file as an ontology too"


def read_ontologies(
    files: Iterable[Path],
    extent: Extent,
    say: Callable[[str], object],
    *,
    lenient: bool = False,
    same_as: bool = False,
    subsumption: bool = False,
    beyond: bool = False,
) -> Rules:
    """The rules of ontologies together; OntologyError names an axiom outside them, FormatError a file."""
    from streamgauge.formats.streams import read_triples
    from streamgauge.reasoning import read_rules
    from streamgauge.reasoning.expressions import EQUALITY

    axioms = [triple for file in files for triple in read_triples(file)]
    rules = read_rules(axioms, extent, same_as=same_as, subsumption=subsumption, beyond=beyond, lenient=lenient)
    for name in rules.imports:
        say(f"the ontology {IMPORTED.format(name)}")
    for axiom in rules.left_out:
        if axiom.reason != EQUALITY:
            say(f"left out of the ontology: {axiom}")
    equal = sum(axiom.reason == EQUALITY for axiom in rules.left_out)
    if equal:
        say(f"left out of the ontology, unless --same-as is given: axioms that derive owl:sameAs ({equal})")
    return rules
