"""The problems of an experiment that the form is to write: sentences at its fields, and those about the whole."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from streamgauge import workloads
from streamgauge.model.mistake import MistakeError
from streamgauge.suites.experiments import ExperimentError
from streamgauge.workbench.rooms.runs.experiment_page import Experiments, UnplannedError
from streamgauge.workbench.rooms.runs.form.fields import numbers_of

_WHOLE: Final = {"workload": "workload.name", "query": "query.0.name", "engine": "engine.0.name"}
"""The fields at which sentences about whole tables stand."""

_REFUSED: Final = re.compile(r"engine (\S+) refuses")


@dataclass
class CheckedForm:
    """The problems by field, those of the whole form, and the estimated duration of the runs."""

    at: dict[str, str] = field(default_factory=dict)
    general: list[str] = field(default_factory=list)
    ahead: str = ""

    @property
    def right(self) -> bool:
        """Whether nothing is wrong."""
        return not self.at and not self.general


def checked(experiments: Experiments, text: str, place: str, fields: Mapping[str, str]) -> CheckedForm:
    """The problems of a text for the experiment file at a place; MistakeError for an invalid place."""
    # The workload's parameters first: their messages name the text that was typed, and later ones at the same field
    # are dropped (`setdefault`).
    outcome = CheckedForm(at=dict(_parameters(fields)))
    try:
        file = experiments.checked(text, place)
        if outcome.right:
            outcome.ahead = experiments.plan(file)[1]
    except UnplannedError as error:
        outcome.ahead = str(error)
    except ExperimentError as error:
        for key, sentence in (error.fields or {"": str(error)}).items():
            _put(outcome, place_of(key, fields) or _named(sentence, fields), sentence)
    except MistakeError as error:
        _put(outcome, _named(str(error), fields), str(error))
    return outcome


def _put(outcome: CheckedForm, name: str, sentence: str) -> None:
    if name:
        outcome.at.setdefault(name, sentence)
    else:
        outcome.general.append(sentence)


def _parameters(fields: Mapping[str, str]) -> Any:
    """The workload's parameters with invalid values, each with its message."""
    name = fields.get("workload.name", "")
    if name not in workloads.names():
        return
    for key, parameter in workloads.load(name).PARAMETERS.items():
        text = fields.get(f"workload.{name}.{key}", "").strip()
        try:
            parameter.type(text) if text else None
        except ValueError as error:
            yield f"workload.{name}.{key}", f"{text!r:.60}: {error}"


def place_of(key: str, fields: Mapping[str, str]) -> str:
    """The form field for a message about a key of the file; empty if no field shows the key."""
    if not key:
        return ""
    swept = {fields[f"sweep.{number}.key"]: f"sweep.{number}.values" for number in numbers_of("sweep", fields)
             if f"sweep.{number}.key" in fields}  # fmt: skip
    # Worked examples, with the workload `weather` and the first sweep's key `feed.pace`:
    #
    #     feed.pace, sweep.feed.pace     sweep.0.values
    #     query.text                     query.0.text
    #     workload.stations              workload.weather.stations
    #     engine.1.semantics.0           engine.1.semantics
    path = key.removeprefix("sweep.")
    if path in swept:
        return swept[path]
    first, *rest = key.split(".")
    if first == "query" and rest and not rest[0].isdigit():
        rest = ["0", *rest]
    if first == "workload" and rest and (name := fields.get("workload.name")):
        rest = [name, *rest]
    if first == "engine" and len(rest) > 1 and rest[1] == "semantics":
        rest = rest[:2]
    return ".".join([first, *rest]) if rest else _WHOLE.get(first, first)


def _named(sentence: str, fields: Mapping[str, str]) -> str:
    """The field that a sentence names: an engine that refuses, or a key at its beginning."""
    if match := _REFUSED.search(sentence):
        named = (n for n in numbers_of("engine", fields) if fields.get(f"engine.{n}.name") == match[1])
        return f"engine.{next(named, 0)}.semantics"
    match = re.match(r"((?:query|workload|feed)\.\w+):", sentence)
    return place_of(match[1], fields) if match else ""
