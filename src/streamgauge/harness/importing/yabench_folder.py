"""A whole test folder of YABench: config.json, engine.query, oracle.query and results/.

Settings are merged as in its runner: the top level, then the test, then ``-D`` options; ``vars`` of both are merged and
fill the queries. Trailing commas in config.json, of which a published folder has one, are ignored.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamgauge.harness.importing import (
    ForeignError,
    ImportedRun,
    ImportRequest,
    assemble,
    by_answers,
    read_text,
    yabench,
)
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.query import QueryError, fill, parse, parse_sparql, print_query
from streamgauge.query import parameters as query_parameters
from streamgauge.semantics.profiles import profile
from streamgauge.workloads.parameters import duration

NAME = "yabench-folder"
ABOUT = "a YABench test folder: config.json, engine.query, oracle.query and results/, a run per QR_ file"

POLICIES = {"onwindowclose": "yabench", "oncontentchange": "yabench-change"}
"""WPOLICY -> the semantics by which YABench's oracle judges."""


KEPT = ("name", "generator", "seed", "stations", "interval", "duration", "min_temp", "max_temp", "singleresult")
"""Settings for the run's header; YABench's rules depend on ``singleresult``."""


def recognises(path: Path) -> bool:
    """Whether a folder holds a config.json and an engine.query."""
    return (path / "config.json").is_file() and (path / "engine.query").is_file()


def read(path: Path, request: ImportRequest) -> Iterator[ImportedRun]:
    """Every run whose QR_ file is in results/; ForeignError names the file and the field."""
    runs_ = [imported for settings in tests(path, request.values) for imported in _test(path, settings, request)]
    if not runs_:
        which = f" of test {request.test}" if request.test else ""
        raise ForeignError(f"{path / 'results'}: there is no QR_ file{which}: run YABench's engine first")
    yield from runs_


def tests(path: Path, values: Mapping[str, str]) -> list[dict[str, Any]]:
    """The settings of every test, merged; ForeignError names the field."""
    file = path / "config.json"
    config = _config(file)
    listed = config.get("tests")
    if not isinstance(listed, list) or not all(isinstance(test, dict) for test in listed):
        raise ForeignError(f"{file}: field tests: expected a list of objects")
    top = {key: value for key, value in config.items() if key not in ("tests", "vars")}
    merged = [{"runs": "1", **top, **test, "vars": _vars(file, config, test), **values} for test in listed]
    for i, settings in enumerate(merged):
        if not isinstance(settings.get("name"), str):
            raise ForeignError(f"{file}: field tests[{i}].name: expected a string")
        if not str(settings["runs"]).isdecimal() or not 1 <= int(settings["runs"]) <= 10_000:
            raise ForeignError(f"{file}: field runs is {settings['runs']!r}: expected a whole number from 1 to 10,000")
    return merged


def _config(file: Path) -> dict[str, Any]:
    text = read_text(file)
    # Strings are matched first, so that a comma inside one stays.
    without = re.sub(r'("(?:[^"\\]|\\.)*")|,(?=\s*[\]}])', lambda match: match[1] or "", text)
    try:
        config = json.loads(without)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ForeignError(f"{file}: not JSON: {error}") from error
    if not isinstance(config, dict):
        raise ForeignError(f"{file}: expected an object")
    return config


def _vars(file: Path, *levels: Mapping[str, Any]) -> dict[str, str]:
    merged: dict[str, str] = {}
    for level in levels:
        variables = level.get("vars", {})
        if not isinstance(variables, dict):
            raise ForeignError(f"{file}: field vars: expected an object of strings")
        merged.update({name: str(value) for name, value in variables.items()})
    return merged


def _test(path: Path, settings: Mapping[str, Any], request: ImportRequest) -> Iterator[ImportedRun]:
    if request.test is not None and settings["name"] != request.test:
        return
    runs = int(settings["runs"])
    for number in range(1, runs + 1):
        suffix = str(number) if runs > 1 else ""
        answers = path / "results" / f"QR_{settings['name']}{suffix}"
        if answers.is_file():
            settled = _settled(path, settings, answers, request)
            kept = {name: settings[name] for name in KEPT if name in settings}
            yield _run(path, answers, request, settled=settled, kept=kept)


def _settled(path: Path, settings: Mapping[str, Any], answers: Path, request: ImportRequest) -> ImportRequest:
    """The request, completed with the folder's settings."""
    values = {**settings["vars"], **request.values}
    # A window without a slide tumbles.
    values.setdefault("WSLIDE", values.get("WSIZE", ""))
    policy = str(values.get("WPOLICY", "")).lower()
    if request.semantics is None and policy not in POLICIES:
        known = " or ".join(POLICIES)
        raise ForeignError(f"{path / 'config.json'}: field vars.WPOLICY is {policy!r}: expected {known}")
    named = settings.get("inputstream")
    stream = request.stream or (_stream(path, str(named)) if named else None)
    return yabench.beside(
        answers,
        replace(
            request,
            query=request.query or read_text(path / "engine.query"),
            stream=stream,
            semantics=request.semantics or profile(POLICIES[policy]),
            engine=request.engine or settings.get("enginename"),
            values=values,
        ),
    )


def _stream(path: Path, named: str) -> Path:
    """The stream that the config names, by its path or relative to the folder."""
    place_ = next((place for place in (Path(named), path / named) if place.exists()), None)
    if place_ is None:
        raise ForeignError(
            f"{path / 'config.json'}: field inputstream: {named} does not exist: name the stream with --stream"
        )
    return place_


def _run(
    path: Path, answers: Path, request: ImportRequest, *, settled: ImportRequest, kept: Mapping[str, object]
) -> ImportedRun:
    """The run of a QR_ file under the completed request ``settled``; ``kept`` goes into its header."""
    recorded = replace(yabench.recorded(answers, settled), workload=kept)
    advance = by_answers(recorded.answers, recorded.started, settled.semantics)
    query, note = _oracle_query(path, settled)
    files, notes = ({"oracle.rq": query}, []) if query else ({}, [note])
    if query and request.semantics is None and request.query is None and _window(query) != _window(_text(settled)):
        files["engine.rq"] = _text(settled)
        notes.append("the run's query is oracle.query: engine.query has another window (kept as engine.rq)")
        settled = replace(settled, query=query, values={})
    known = query_parameters(settled.query or "")
    used = {name: value for name, value in settled.values.items() if name in known}
    imported = assemble(answers, NAME, recorded, replace(settled, values=used), advance)
    return replace(imported, files=files, notes=(*imported.notes, *notes))


def _window(text: str) -> Window:
    return parse(text).window


def _oracle_query(path: Path, request: ImportRequest) -> tuple[str | None, str]:
    """(oracle.query as a continuous query for ``check --query`` or ``None``, the reason)."""
    file = path / "oracle.query"
    if not file.is_file():
        return None, "no oracle.query"
    template = read_text(file)
    try:
        text = fill(template, {name: request.values[name] for name in query_parameters(template)})
        size, slide = duration(request.values["WSIZE"]), duration(request.values["WSLIDE"])
        iri = parse(_text(request)).windows[0].stream
        query = ContinuousQuery(parse_sparql(text), (StreamWindow(iri, Window(size, slide)),), name="oracle")
        return print_query(query, "csparql"), ""
    except (QueryError, ValueError, KeyError) as error:
        return None, f"oracle.query is left out: {error}"


def _text(request: ImportRequest) -> str:
    text = request.query or ""
    return fill(text, {name: request.values[name] for name in query_parameters(text) if name in request.values})
