"""Files of queries with their options: ``hot.rq`` and ``hot.toml``."""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from streamgauge.formats.files import read_text
from streamgauge.formats.streams import read_triples
from streamgauge.formats.toml import line_of, not_toml
from streamgauge.model.mistake import MistakeError
from streamgauge.model.phrases import offered
from streamgauge.servers.queries.folder import QueryFile
from streamgauge.servers.queries.requests import RequestError, number_of, read_registration
from streamgauge.workloads.parameters import duration, instant

_TIMES: Final[Mapping[str, Callable[[object], int]]] = {"lateness": duration, "t0": instant}
_KEYS: Final = ("dialect", "semantics", "engine", "lateness", "t0", "advance", "static", "to")


class QueryFileError(MistakeError, ValueError):
    """Invalid options of a query; the sentence names the file and the line."""


def read_query_file(file: Path) -> QueryFile:
    """The query of a file with the options of the TOML file of the same name, if any; MistakeError.

    Options: ``dialect``, ``semantics`` (a profile's name, or a table of its fields), ``engine``, ``lateness`` and
    ``t0`` (durations or dates), ``advance``, ``static`` (an RDF file in the same folder) and ``to`` (URLs of sinks).
    """
    # Numbers are assigned on registration, and one must not meet a name from a file.
    if number_of(file.stem):
        raise QueryFileError(f"{file}: names such as q1 are those of queries that clients register: rename the file")
    beside = file.with_suffix(".toml")
    text = read_text(beside) if beside.is_file() else ""
    options = _options(beside, text)
    static = options.pop("static", None)
    sinks = options.pop("to", [])
    for key, valid in (("static", isinstance(static, str | None)), ("to", _texts(sinks))):
        if not valid:
            kind = "text in quotes" if key == "static" else "a list of URLs"
            raise QueryFileError(f"{_place(beside, text, key)}: write {kind}")
    others = () if static is None else (file.parent / static,)
    triples = "".join(f"{' '.join(triple)} .\n" for other in others for triple in read_triples(other))
    try:
        registration = read_registration({"query": read_text(file), "static": triples, **options})
    except RequestError as error:
        key = str(error).partition(" ")[0].partition(".")[0]
        raise QueryFileError(f"{_place(beside, text, key)}: {error}") from error
    return QueryFile(registration, tuple(sinks), others)


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


def _place(beside: Path, text: str, key: str) -> str:
    return f"{beside}:{line_of(text, (key,)) or 1}"


def _options(beside: Path, text: str) -> dict[str, Any]:
    """The options in the form of registrations, times in ms."""
    try:
        options = tomllib.loads(text)
    except ValueError as error:
        raise QueryFileError(not_toml(beside, text, error)) from error
    for key in options:
        if key not in _KEYS:
            raise QueryFileError(f"{_place(beside, text, key)}: {key}: no such option: {offered(key, _KEYS)}")
    for key, read in _TIMES.items():
        if key in options:
            try:
                options[key] = read(options[key])
            except ValueError as error:
                raise QueryFileError(f"{_place(beside, text, key)}: {key}: {error}") from error
    return options
