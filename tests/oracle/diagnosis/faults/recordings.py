"""Recordings of engines that differ in one thing from the declared one, straight from the definition."""

from collections.abc import Iterable
from dataclasses import replace

from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.run import Run
from streamgauge.model.semantics import Semantics
from streamgauge.model.verdict import Diagnosis
from streamgauge.oracle.diagnosis.diagnose import diagnose
from streamgauge.semantics.profiles import RSPQL
from tests.notation import stream
from tests.oracle.runs import right_run

CLOSE = replace(RSPQL, name="close")

Case = dict[str, object]


def recording(
    text: str,
    sparql: str,
    wrong_sparql: str | None = None,
    window: tuple[int, int] = (10, 10),
    wrong_window: tuple[int, int] | None = None,
    advance: int = 60,
    semantics: Semantics = CLOSE,
    wrong_text: str | None = None,
    named: bool = False,
) -> Run:
    """The answers to another query, over another window or another stream, recorded as those to the declared one."""
    right = right_run(semantics, text, sparql, window, advance, named)
    wrong = right_run(semantics, wrong_text or text, wrong_sparql or sparql, wrong_window or window, advance, named)
    return replace(right, answers=wrong.answers)


def with_rows(run: Run, rows: Iterable[Iterable[tuple[str, ...]]]) -> Run:
    """The run with these rows in its reports instead."""
    answers = [replace(answer, added=tuple(new)) for answer, new in zip(run.answers, rows, strict=True)]
    return replace(run, answers=tuple(answers))


def diagnosed(run: Run, text: str) -> Diagnosis:
    """The diagnosis of a run on a stream in the tests' notation; it must be exact."""
    result = diagnose(run, elements(text))
    assert result.exact, (result.distance, result.models)
    return result


def elements(text: str) -> tuple[StreamElement, ...]:
    """The elements of a stream in the tests' notation."""
    return tuple(stream(text))


def best(result: Diagnosis) -> list[str]:
    """The names of the models that are equally good as the first, it included."""
    return [" + ".join(part.name for part in model) for model in result.models[: result.equal]]


def rows_of(answers: Iterable[Answer]) -> list[tuple[tuple[str | None, ...], ...]]:
    """The rows of answers, in order."""
    return [answer.added for answer in answers]
