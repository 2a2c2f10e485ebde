"""Options shared by several commands: parameters, durations, names, own data, ontologies; and their parsing."""

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
    """The Spark master, unchanged; BadParameter, before any work, for an invalid address."""
    if master is not None and not _MASTER.fullmatch(master):
        raise typer.BadParameter(
            f"{master!r} is not a Spark master: write local[*], local[4], yarn, spark://HOST:7077, k8s://URL or sc://HOST"
        )
    return master


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Master = Annotated[str | None, typer.Option(help="Spark master (default: local[*]).", callback=known_master)]
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
    """Add the file's name to an error of its query."""
    from streamgauge.query import QueryError

    try:
        yield
    except QueryError as error:
        if file is None:
            raise
        raise MistakeError(f"{'standard input' if str(file) == '-' else file}, {error}") from error


def tell_notes(query: ContinuousQuery) -> None:
    """Print the assumptions made in reading a query on standard error."""
    for note in query.notes:
        tell_note(note)


def milliseconds(value: str | None, option: str | None = None) -> int | None:
    """A duration in ms, ``None`` for none; BadParameter for the option.

    A number without a unit is ms, which a note says.
    """
    if value is None:
        return None
    number = _read(value, option)
    tell_unit(value, option)
    return number


def seconds(value: str, option: str) -> float:
    """A duration in seconds, with the errors and notes of ``milliseconds``."""
    return (milliseconds(value, option) or 0) / 1000


def checked_duration(param: typer.CallbackParam, value: str | None) -> str | None:
    """A callback: the duration as text with a unit; errors and notes as of ``milliseconds``."""
    ms = milliseconds(value, param.opts[0] if param.opts else None)
    return None if ms is None else f"{ms}ms"


def instant(value: str | None, option: str = "--t0") -> int | None:
    """A time of the stream in ms, from ms, a duration since time 0, or a date; BadParameter."""
    return None if value is None else _read(value, option, to_instant)


WINDOWS: Final = "windows"
"""The value of ``--advance-to`` that means: until all non-empty windows have closed."""


def horizon_time(value: str | None) -> int | None:
    """The time of ``--advance-to`` in ms, as by ``instant``, with the note of ``milliseconds``."""
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
    """The query of a file (``-`` for standard input) with parameters from ``NAME=VALUE``; MistakeError."""
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
    # Without a note for 0, which is the same in every unit.
    if text.isdecimal() and int(text):
        where = f"{option} {text}" if option else text
        typer.echo(f"streamgauge: note: {where} is read as {text} ms: write {text}ms, or {text}s for seconds", err=True)


Known: TypeAlias = Callable[[], Iterable[str]]
"""A function that returns the known names, called only when they are needed."""


def chosen(name: str, known: Iterable[str], option: str | None = None) -> str:
    """The known name that matches in any case; BadParameter for the option lists the known ones."""
    names = list(known)
    if (name_ := spelled(name, names)) is None:
        message = f"{name!r}: choose from {', '.join(names)}{meant(name, names)}"
        raise typer.BadParameter(message, param_hint=option)
    return name_


def one_of(known: Known, *declared: str, help: str) -> Any:  # noqa: A002
    """An option that takes one of these names, in any case; checked when parsed."""

    def checked(value: str | None) -> str | None:
        return None if value is None else chosen(value, known())

    return typer.Option(*declared, callback=checked, autocompletion=completed(known), metavar="NAME", help=help)


def one_named(known: Known, *declared: str, help: str) -> Any:  # noqa: A002
    """An option that takes one of these names; checked where it is used."""
    return typer.Option(*declared, autocompletion=completed(known), metavar="NAME", help=help)


def completed(known: Known) -> Callable[[str], list[str]]:
    """A completion function for these names."""

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
    str | None,
    one_of(
        sparql_versions, "--sparql", help="The version of SPARQL, 1.1 or 1.2 (default: stated by the query, else 1.2)."
    ),
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
"""Options of the user's own data by name; those that were not set are ``None`` or absent."""

NO_OPTIONS: Final[OwnData] = {}


def own_data(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command: its parameter ``own`` has the options of own data, each an option of the command."""
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
    # The help lists options in the order of parameters, so these take the place of ``own``.
    plain = list(signature.parameters.values())
    place = list(signature.parameters).index("own")
    return with_parameters(commanded, [*plain[:place], *options, *plain[place + 1 :]])


def with_parameters(command: Callable[..., None], parameters: Iterable[inspect.Parameter]) -> Callable[..., None]:
    """Set the signature of a wrapped command."""
    keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    command.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in keywords}
    del command.__wrapped__  # type: ignore[attr-defined]  # its signature would be found instead
    return command


def own_reading(text: str, lateness: int | None, own: OwnData, *, checked: bool = True) -> Reading:
    """The reading of sources with a query's prefixes; notes go to standard error.

    ``checked``: check terms even if the format would accept them unread.
    """
    from streamgauge.formats.streams import Reading
    from streamgauge.query.prologue import declared_prefixes

    named = {name: own[name] for name in OWN_DATA_NAMES if own.get(name) is not None}
    prefixes = declared_prefixes(text)
    return Reading(lateness=lateness, checked=checked, prefixes=prefixes, note=tell_note, **named)  # type: ignore[arg-type]


def tell_note(sentence: str) -> None:
    """Print a note on standard error."""
    typer.echo(f"streamgauge: note: {sentence}", err=True)


Lenient = Annotated[
    bool, typer.Option("--ontology-lenient", help="List and skip axioms outside OWL 2 RL instead of refusing them.")
]
SameAs = Annotated[
    bool, typer.Option("--same-as", help="Derive owl:sameAs (keys, functional properties) and apply it.")
]
Subsumption = Annotated[
    bool,
    typer.Option(
        "--subsumption", help="Derive that `p some C` is a subclass of `p some D` if C is one of D (scm-svf1, -svf2)."
    ),
]
Beyond = Annotated[
    bool,
    typer.Option("--beyond-rl", help="Add rules that OWL 2 RL lacks: reflexive properties, owl:differentFrom."),
]
IMPORTED: Final = "imports {}, which is not fetched: name its file as another ontology"


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
    """The rules of several ontologies; OntologyError names an unsupported axiom, FormatError a file."""
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
        say(f"left out of the ontology without --same-as: axioms that derive owl:sameAs ({equal})")
    return rules
