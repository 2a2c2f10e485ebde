"""Experiment 4 and figure 5: the engines that YABench describes, simulated, and judged by its rules.

The streams' times are ms. What each engine does is said in its docstring; nothing else is assumed.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count

from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import ExpectedReport
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import Borders, Scope, Semantics
from streamgauge.model.terms import RDF_TYPE, Row
from streamgauge.papers.rules import Settings, yabench
from streamgauge.papers.rules.yabench_lines import Line
from streamgauge.query import parse
from streamgauge.semantics.definition import expected
from streamgauge.semantics.profiles import CSPARQL, YABENCH, YABENCH_CHANGE

NS = 1_000_000

FIRST, OTHERS = 10, 2
"""ms between the triples of the first observation, while the engine starts up, and of the others."""
LATE = 40
"""How late (ms) the first observation came to CQELS in the run without gracious mode."""

RANGE = replace(YABENCH_CHANGE, name="pure RANGE", scope=Scope.RANGE, borders=Borders.CLOSED_OPEN)


def csparql(stream: Sequence[StreamElement], query: ContinuousQuery, until: int) -> tuple[Answer, ...]:
    """Triples come one by one; windows start within the first observation, so each border tears one in two.

    No window then holds the observation on its border whole, and it is in no answer.
    """
    numbers = count()
    torn = [
        StreamElement(element.stream, element.time + place * (OTHERS if at else FIRST), next(numbers), (triple,))
        for at, element in enumerate(stream)
        for place, triple in enumerate(element.added)
    ]
    t0 = torn[0].time + len(stream[0].added) * FIRST // 2
    found = expected(torn, query, replace(CSPARQL, t0=t0), until + t0, t0)
    return tuple(Answer(report.variables, report.rows, received=report.due.instant * NS) for report in found)


def cqels(stream: Sequence[StreamElement], query: ContinuousQuery, until: int, late: int = 0) -> tuple[Answer, ...]:
    """The query has no SLIDE: at every observation the rows that are new over (t - 5 s, t], one a report.

    First those in which the new observation is ?ob1, then those in which it is ?ob2, oldest partner first; the first
    observation may come ``late`` (ms).
    """
    fed = [replace(stream[0], time=stream[0].time + late), *stream[1:]]
    found = expected(fed, query, RANGE, until, 0)
    return tuple(
        Answer(report.variables, (row,), received=report.due.instant * NS)
        for report in found
        for row in sorted(report.rows, key=_joined(report))
    )


def _joined(report: ExpectedReport) -> Callable[[Row], tuple[bool, int]]:
    first, second = (report.variables.index(name) for name in ("ob1", "ob2"))

    def key(row: Row) -> tuple[bool, int]:
        left, right = (_time(row[place] or "") for place in (first, second))
        return left < right, min(left, right)

    return key


def _time(observation: str) -> int:
    """The time at the end of an observation's IRI."""
    return int(observation.removesuffix(">").rpartition("_")[2])


def judged(
    stream: Sequence[StreamElement], asked: tuple[str, ContinuousQuery], answers: tuple[Answer, ...], settings: Settings
) -> list[Line]:
    """The lines that YABench's oracle writes; one answer per row is judged on content change."""
    semantics = YABENCH_CHANGE if all(len(answer.added) == 1 for answer in answers) else YABENCH
    return yabench.lines(_run(asked, answers, semantics, stream[-1].time), stream, settings)


def _run(asked: tuple[str, ContinuousQuery], answers: tuple[Answer, ...], semantics: Semantics, until: int) -> Run:
    return Run(RunHeader("simulated", asked[1], asked[0], "rspql", semantics, until, 0), answers, ())


CSPARQL_DOES = (
    "C-SPARQL is simulated so: triples come one by one, and its windows start within the first observation, so "
    "each border tears one observation in two; no window holds that one whole, and it is in no answer."
)
CQELS_DOES = (
    "CQELS is simulated so: its query has no SLIDE, so at every observation it sends the rows that are new over "
    "the last 5 s, one by one, first those in which the new observation is ?ob1, then those in which it is ?ob2, "
    f"oldest partner first. In the run without gracious mode the first observation came {LATE} ms late; the two "
    "modes were two runs."
)

EXAMPLE = """REGISTER <example> AS SELECT ?s
FROM NAMED WINDOW <http://ex.org/windows/w> ON <http://ex.org/streams/test> [RANGE 5s STEP 5s]
WHERE { WINDOW <http://ex.org/windows/w> { ?s a <http://ex.org/Observation> ; <http://ex.org/value> ?value } }"""


def figure_5() -> tuple[Line, Line]:
    """A window of 5 s holds three results; the engine's is shifted by 2.5 s and holds two, of which one is expected."""
    stream = [_observation(number, time) for number, time in enumerate((1000, 2000, 3000, 6000, 8000))]
    asked = EXAMPLE, parse(EXAMPLE)
    rows = tuple((f"<http://ex.org/{number}>",) for number in (2, 3))
    answers = (Answer(("s",), rows, received=7500 * NS),)
    plain, gracious = (judged(stream, asked, answers, Settings(gracious=mode))[0] for mode in (False, True))
    return plain, gracious


def _observation(number: int, time: int) -> StreamElement:
    subject = f"<http://ex.org/{number}>"
    triples = ((subject, RDF_TYPE, "<http://ex.org/Observation>"), (subject, "<http://ex.org/value>", '"1"'))
    return StreamElement("http://ex.org/streams/test", time, number, triples)
