"""Experiment files: a TOML file with workload, queries, engines, semantics, pace, repetitions, seeds and sweeps.

Every error names the file, the line and the key.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    field_validator,
    model_validator,
)

from streamgauge import engines
from streamgauge.formats.contexts import context_files, contexts_near
from streamgauge.formats.toml import line_of, not_toml
from streamgauge.model.mistake import MistakeError, obstacle
from streamgauge.model.own_data import OWN_DATA_NAMES
from streamgauge.model.phrases import expectation, meant, spelled
from streamgauge.semantics.profiles import PROFILES
from streamgauge.sources.contract import parse_address
from streamgauge.sources.named import NamedSource, named_source
from streamgauge.suites.experiments.variants import SweepError, VariantData, expanded, put, unswept
from streamgauge.workloads.parameters import duration

Allowed: TypeAlias = Callable[[Sequence[str]], list[str]]
"""The allowed keys of the table at a path."""

_OF_UNIONS: Final = re.compile(r"literal\[|constrained-|function-|(float|int|str)$")
"""The names that Pydantic adds to the path of a problem for the alternatives of a type."""

_MISSING = {
    "semantics": ': write semantics = "csparql", or a list (`streamgauge engines --semantics` lists them)',
    "engine": ": write [[engine]], and below it name and semantics (`streamgauge engines` lists them)",
    "workload": ": write [workload], and below it name (`streamgauge workloads` lists them) or file, your stream",
    "query": ": write [query], and below it file, or name, a query of the workload",
}
"""How to write the keys that are most often missing."""


def complaints(
    error: ValidationError, path: Path, text: str, allowed: Allowed, query: int | None = None
) -> Iterator[tuple[str, str, str]]:
    """(key, place, sentence) for each faulty key; several problems of one key share a sentence.

    ``query`` is the number (from 0) of the query in a file with several. Consequences of another problem are left out:
    a missing key that was misspelt, and a list that is empty because its entries are wrong.
    """
    by_key: dict[tuple[str, ...], list[Any]] = {}
    for problem in error.errors():
        by_key.setdefault(_keys(problem), []).append(problem)
    for keys, problems in by_key.items():
        if not _follows(keys, problems, by_key, allowed):
            place = keys if query is None or keys[:1] != ("query",) else ("query", str(query), *keys[1:])
            line = line_of(text, ("sweep", *place)) if _is_swept(text, place) else line_of(text, place)
            where = f"{path}:{line}" if line else str(path)
            yield ".".join(place), where, f"{'.'.join(place) or 'the file'}{_complaint(keys, problems, allowed)}"


def _keys(problem: Any) -> tuple[str, ...]:
    """The path of a problem in the file."""
    path = [str(key) for key in problem["loc"]]
    # A key that is unknown or missing comes last, and may have the name of a type.
    own = len(path) - (problem["type"] in ("extra_forbidden", "missing"))
    return tuple(key for at, key in enumerate(path) if at == own or not _OF_UNIONS.match(key))


def _is_swept(text: str, keys: Sequence[str]) -> bool:
    """Whether the file sweeps over a key."""
    at = tomllib.loads(text).get("sweep", {})
    # A sweep may be written with dots in quotes, ``"workload.stations" = [1, 2]``, or as tables in each other.
    flat = at.get(".".join(keys)) if isinstance(at, dict) else None
    for key in keys:
        at = at.get(key) if isinstance(at, dict) else None
    return bool(keys) and (at or flat) is not None


def _follows(
    keys: tuple[str, ...], problems: Sequence[Any], by_key: Mapping[tuple[str, ...], Any], allowed: Allowed
) -> bool:
    """Whether a problem is only the consequence of another one."""
    kind = problems[0]["type"]
    if kind == "too_short":
        return any(other[: len(keys)] == keys and other != keys for other in by_key)
    # Worked example: ``semantic = "csparql"`` gives two problems, an unknown key ``semantic`` and a missing
    # ``semantics``. The first offers the second's name, so only the first is reported.
    written = (other for other, problems in by_key.items() if problems[0]["type"] == "extra_forbidden")
    return kind == "missing" and any(
        other[:-1] == keys[:-1] and meant(other[-1], allowed(other[:-1])).endswith(f" {keys[-1]}?") for other in written
    )


def _complaint(keys: Sequence[str], problems: Sequence[Any], allowed: Allowed) -> str:
    kind = problems[0]["type"]
    if kind == "missing":
        return f" is missing{_MISSING.get(keys[-1], '') if keys else ''}"
    if kind == "extra_forbidden":
        known = allowed(keys[:-1])
        return f": unknown key; allowed here: {', '.join(known)}{meant(keys[-1], known)}"
    if list(keys) == ["engine"] and isinstance(problems[0].get("input"), dict):
        return ": write [[engine]], as there may be several"
    first, *others = map(expectation, problems)
    more = [other.partition(": expected ")[2] for other in others]
    return f": {' or '.join([first, *filter(None, more)])}"


Milliseconds = Annotated[int, BeforeValidator(duration)]
"""A duration such as ``30s``, ``500ms``, ``5m``, ``1h``, or a number of ms."""


class ExperimentError(MistakeError, ValueError):
    """An invalid experiment file; the sentence names the file, the line and the allowed values.

    ``fields`` maps each faulty key, as far as known, to a sentence.
    """

    def __init__(self, sentence: str, fields: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.fields = dict(fields or {})


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _listed_files(value: object) -> tuple[str, ...]:
    files = value if isinstance(value, list | tuple) else [value]
    if not (files or isinstance(value, tuple)) or not all(isinstance(file, str | Path) and str(file) for file in files):
        raise ValueError("expected a file name or a list of file names")
    return tuple(map(str, files))


def _named_streams(value: object) -> str | dict[str, str] | None:
    if isinstance(value, dict) and value and all(isinstance(file, str | Path) for file in value.values()):
        return {str(iri).strip("<>"): str(file) for iri, file in value.items()}
    if value is None or (isinstance(value, str) and value):
        return value.strip("<>") if value else None
    raise ValueError('expected the IRI of the stream, or a table from IRI to file: { "http://a.example/s" = "a.nq" }')


_OPTIONS: Final[dict[str, Any]] = dict.fromkeys(OWN_DATA_NAMES, (str | None, None))
_ReadPart: Final[type[_Part]] = create_model("_ReadPart", __base__=_Part, **_OPTIONS)
"""The reading options of a recorded stream."""


class WorkloadPart(_ReadPart):
    """The source of the stream: a workload with its parameters, or the files of a recorded stream.

    ``stream`` is the IRI of a recorded stream, or a table from IRI to file; for a workload it is a parameter.
    """

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str | None = None
    file: Annotated[tuple[str, ...], BeforeValidator(_listed_files)] = ()
    stream: Annotated[str | dict[str, str] | None, BeforeValidator(_named_streams)] = None

    @model_validator(mode="after")
    def _one(self) -> "WorkloadPart":
        table = isinstance(self.stream, dict)
        if (self.name is None) == (not self.file and not table):
            raise ValueError("give either name (a workload) or file (a recorded stream)")
        if table and self.file:
            raise ValueError("give the files once: under stream, by the IRI of each, or as file")
        if self.name is not None and (wrong := ["stream"] if table else list(self.timing)):
            raise ValueError(f"{wrong[0]} is for a recorded stream (file), not for a workload")
        if self.name is None and self.model_extra:
            known = ", ".join(("file", "stream", *OWN_DATA_NAMES))
            raise ValueError(
                f"{next(iter(self.model_extra))} does not apply to a recorded stream, whose keys are {known}"
            )
        return self

    @property
    def parameters(self) -> dict[str, object]:
        """The remaining keys of the table, which the workload checks."""
        beside = {"stream": self.stream} if self.name is not None and self.stream is not None else {}
        return {**(self.model_extra or {}), **beside}

    @property
    def sources(self) -> tuple[NamedSource, ...]:
        """The sources of a recorded stream; empty for a workload."""
        if isinstance(self.stream, dict):
            return tuple(NamedSource(address, iri) for iri, address in self.stream.items())
        named = map(named_source, self.file)
        return tuple(
            source if source.iri or not self.stream else NamedSource(source.address, self.stream) for source in named
        )

    @property
    def timing(self) -> dict[str, Any]:
        """The reading options of a recorded stream that the file sets."""
        return {name: value for name in OWN_DATA_NAMES if (value := getattr(self, name)) is not None}

    @property
    def option_files(self) -> tuple[Path, ...]:
        """The files that these options name."""
        options = self.timing
        mappings = [Path(options[name]) for name in ("csv_mapping", "json_mapping") if name in options]
        return (*mappings, *context_files(options.get("context")))


class QueryPart(_Part):
    """A query, given by its name in the workload, a file or its text, with the values of its parameters."""

    name: str | None = None
    file: Path | None = None
    text: str | None = None
    static: Path | None = None
    parameters: dict[str, str | int | float] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one(self) -> "QueryPart":
        if sum(value is not None for value in (self.name, self.file, self.text)) != 1:
            raise ValueError("give exactly one of name, file and text")
        return self

    @property
    def label(self) -> str:
        """The name of the workload's query or of the file; empty for a query given as text."""
        return self.name or (self.file.stem if self.file is not None else "")


class EnginePart(_Part):
    """An engine, its own options, and the names of the semantics under which it runs and is judged.

    ``time_unit`` (ms) overrides that of the semantics.
    """

    name: str
    semantics: tuple[str, ...] = Field(min_length=1)
    options: dict[str, str | int | float | bool] = Field(default_factory=dict)
    time_unit: Annotated[Milliseconds, Field(ge=1)] | None = None

    @field_validator("name", mode="after")
    @classmethod
    def _named(cls, name: str) -> str:
        """The name in its canonical spelling; an unknown name is refused when the engine is loaded."""
        return spelled(name, engines.names()) or name

    @field_validator("semantics", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        """Canonical spellings as a list; an unknown name is refused when its semantics are looked up."""
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list | tuple):
            return value
        return tuple(spelled(name, PROFILES) or name if isinstance(name, str) else name for name in listed)


class FeedPart(_Part):
    """How the stream is fed: ``pace`` is ``fast``, ``real time`` or a multiple of it; limits of the engine's run."""

    pace: Literal["fast", "real time"] | Annotated[float, Field(gt=0)] = "fast"
    time_limit: Milliseconds = 600_000
    output_limit_mb: Annotated[int, Field(gt=0)] = 1024
    lateness: Milliseconds | None = None
    advance_to: Milliseconds | None = None

    @property
    def factor(self) -> float | None:
        """Event time over wall time; ``None`` for as fast as the engine accepts elements."""
        if self.pace == "fast":
            return None
        return 1.0 if self.pace == "real time" else float(self.pace)


class Experiment(_Part):
    """An experiment: ``seeds`` x ``repetitions`` runs for each engine and semantics."""

    name: str = "experiment"
    workload: WorkloadPart
    query: QueryPart
    engine: tuple[EnginePart, ...] = Field(min_length=1)
    feed: FeedPart = FeedPart()
    seeds: tuple[int, ...] = Field(default=(0,), min_length=1)
    repetitions: Annotated[int, Field(ge=1)] = 1
    memory_limit_mb: Annotated[int, Field(gt=0)] = 8192
    max_delay: Milliseconds | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    """An experiment with one query and one value for each swept field; ``point`` maps the fields' names to these.

    ``overrides`` are the ``-D`` options that select this variant alone.
    """

    experiment: Experiment
    point: Mapping[str, str] = field(default_factory=dict)
    overrides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExperimentFile:
    """The name of an experiment and its variants, at least one."""

    name: str
    variants: tuple[Variant, ...]


def read(path: Path, overrides: Sequence[str] = ()) -> Experiment:
    """As ``read_file``, for a file with a single variant; ExperimentError for more."""
    file = read_file(path, overrides)
    if len(file.variants) > 1:
        raise ExperimentError(
            f"{path}: it has {len(file.variants)} variants, but one is needed: select one with -D, as in "
            f"-D {' -D '.join(map(repr, file.variants[0].overrides))}"
        )
    return file.variants[0].experiment


def read_file(path: Path, overrides: Sequence[str] = ()) -> ExperimentFile:
    """The variants of a TOML file after ``key.path=value`` overrides; ExperimentError names line and field."""
    try:
        # Some editors begin a file with a byte order mark, which TOML does not allow.
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError(f"{path}: {obstacle(error)}") from error
    return read_text(text, path, overrides)


def read_text(text: str, path: Path, overrides: Sequence[str] = ()) -> ExperimentFile:
    """As ``read_file``, for a text; ``path`` is where it is or will be stored."""
    try:
        data = tomllib.loads(text)
    except ValueError as error:
        raise ExperimentError(not_toml(path, text, error)) from error
    # Before the sweeps are expanded: -D of a swept field replaces the sweep.
    for override in overrides:
        _set(data, override)
    try:
        variants = tuple(_variant(variant, path, text) for variant in expanded(data))
    except SweepError as error:
        line, key = line_of(text, error.keys), ".".join(error.keys)
        where = f"{path}:{line}" if line else str(path)
        raise ExperimentError(f"{where}: {key}: {error}", {key: str(error)}) from error
    return ExperimentFile(variants[0].experiment.name, variants)


def _variant(variant: VariantData, path: Path, text: str) -> Variant:
    """Validate a variant; ExperimentError."""
    try:
        experiment = Experiment.model_validate(_near(variant.data, path.parent))
    except ValidationError as error:
        wrong = list(complaints(error, path, text, _allowed, variant.number))
        sentences = "\n".join(f"{where}: {sentence}" for _, where, sentence in wrong)
        raise ExperimentError(sentences, {key: sentence for key, _, sentence in wrong}) from error
    return Variant(experiment, variant.point, variant.overrides)


def _set(data: dict[str, Any], override: str) -> None:
    """Apply one ``a.b=value`` override; a value that does not parse as TOML is a string."""
    key, equals, value = override.partition("=")
    if not equals or not key:
        raise ExperimentError(f"-D {override}: write key=value, as in -D workload.stations=50")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except ValueError:
        parsed = value
    try:
        put(data, key, parsed)
    except SweepError as error:
        raise ExperimentError(f"-D {override}: {error}") from error
    unswept(data, key)


def _near(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Resolve the paths in an experiment file against its folder."""
    for table, key in (
        *(("workload", name) for name in ("csv_mapping", "json_mapping")),
        *(("query", name) for name in ("file", "static")),
    ):
        part = data.get(table)
        # Values of other types stay as they are: the validation after this names them.
        if isinstance(part, dict) and isinstance(part.get(key), str):
            part[key] = str(folder / part[key])
    workload = data.get("workload")
    if isinstance(workload, dict):
        if isinstance(context := workload.get("context"), str):
            workload["context"] = contexts_near(context, folder)
        files, streams = workload.get("file"), workload.get("stream")
        if isinstance(files, list):
            workload["file"] = [_source_near(file, folder) for file in files]
        elif files is not None:
            workload["file"] = _source_near(files, folder)
        if isinstance(streams, dict):
            workload["stream"] = {iri: _source_near(file, folder) for iri, file in streams.items()}
    return data


def _source_near(text: Any, folder: Path) -> Any:
    """``[IRI=]FILE`` with the file below a folder; URLs and values that are not strings stay unchanged."""
    if not isinstance(text, str):
        return text
    source = named_source(text)
    if parse_address(source.address).scheme != "file" or source.address.startswith("file:"):
        return text
    near = str(folder / source.address)
    return near if source.iri is None else f"<{source.iri}>={near}"


def _allowed(tables: Sequence[str]) -> list[str]:
    parts: dict[str, type[BaseModel]] = {
        "workload": WorkloadPart,
        "query": QueryPart,
        "engine": EnginePart,
        "feed": FeedPart,
    }
    part = parts.get(tables[0], Experiment) if tables else Experiment
    return sorted((*part.model_fields, *(() if tables else ("sweep",))))
