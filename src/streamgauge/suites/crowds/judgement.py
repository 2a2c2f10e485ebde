"""Judgement of clients' answers: by the definition, over the facts that the server held when it was asked."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from json import dumps
from typing import Any, Final, TypeAlias

from streamgauge.formats.lines import decode_answer
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.run import Fed, Run, RunHeader
from streamgauge.model.terms import Row, Triple
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.expected.valid import Valid
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.semantics.profiles import FRAGMENTS, profile
from streamgauge.servers.fragments.labels import Label
from streamgauge.suites.crowds.clients import digest
from streamgauge.suites.crowds.scenario import SERVICES, Scenario, continuous, over_all
from streamgauge.suites.crowds.updates import FactRenewal, Update, updates

WITNESSES: Final = 10
"""The most clients with queries of their own whose answers are judged."""

Right: TypeAlias = Callable[[Mapping[str, Any]], bool | None]
"""Whether an answer (a client's line) is right, ``None`` where that cannot be said."""


class ServerHistory:
    """Answers over what a server held: right when they are those of some instant between its time and reception.

    A fragments server's Date has whole seconds, so an answer may be of any instant of that second or later, until it
    was there. The server held an update from when it applied it until it applied the next. ``answer`` is what an answer
    is of a bag of rows: ``set`` for a broker.
    """

    def __init__(
        self,
        scenario: Scenario,
        elements: Sequence[StreamElement],
        static: Sequence[Triple],
        applied: Sequence[tuple[int, int]],
        answer: Callable[[Iterable[Row]], Collection[Row]] = list,
    ) -> None:
        self._scenario, self._static, self._answer = scenario, tuple(static), answer
        by_time = {update.time: update for update in updates(elements, scenario.slack)}
        held = [(at, by_time[time]) for at, time in applied]
        adds = scenario.renewal == FactRenewal.PUBLISHED and scenario.label == Label.INTERVAL
        self._history = added(held, elements[0].stream) if adds else history(held, elements[0].stream)
        self._valid: dict[str, Valid] = {}
        self._digests: dict[int, str] = {}

    def right(self, line: Mapping[str, Any]) -> bool | None:
        """Whether an answer is right."""
        query, text = continuous(self._scenario, line["client"])
        if text not in self._valid:
            self._valid[text] = Valid(over_all(query, self._static), FRAGMENTS, self._history)
        found = self._valid[text].within(line["instant"], line["received"])
        return any(self._digest(rows) == line["rows"] for rows in found)

    def _digest(self, rows: tuple[Row, ...]) -> str:
        """Made once for the rows of a query at an instant, which stay as long as this does."""
        if id(rows) not in self._digests:
            self._digests[id(rows)] = digest(self._answer(rows))
        return self._digests[id(rows)]


def history(applied: Sequence[tuple[int, Update]], stream: str) -> list[StreamElement]:
    """The facts of a server, from when (ms) it had applied an update until it had applied the next, or it ended."""
    ends = [at for at, _ in applied[1:]]
    last = applied[-1][0] + applied[-1][1].until - applied[-1][1].time
    return [
        StreamElement(stream, at, number, update.triples, (), end)
        for number, ((at, update), end) in enumerate(zip(applied, [*ends, last], strict=True))
    ]


def added(applied: Sequence[tuple[int, Update]], stream: str) -> list[StreamElement]:
    """The facts of a server that only adds facts, each until it ends: those of the next update overlap."""
    return [
        StreamElement(stream, at, number, update.triples, (), at + update.until - update.time)
        for number, (at, update) in enumerate(applied)
    ]


def witnesses(scenario: Scenario) -> list[int]:
    """The clients whose answers are judged: the first, and where queries are distinct some more."""
    return list(range(min(WITNESSES, scenario.clients) if scenario.distinct else 1))


def services(
    scenario: Scenario, elements: Sequence[StreamElement], lines: Sequence[Mapping[str, Any]], begins: int
) -> tuple[str, Right]:
    """The common judge's word on the witnesses' answers, and whether others had the same at each instant.

    The verdict is that of the first witness that is not right, or else of the first that was told something. Where
    queries are distinct, or answers name no instant, other clients' answers are not judged.
    """
    told = [line for line in lines if "answer" in line]
    if not told:
        return "no answer", lambda _line: None
    advanced = max(line["received"] - begins for line in told)
    fed = [each for each in elements if each.time <= advanced]
    answers = {client: [line for line in told if line["client"] == client] for client in witnesses(scenario)}
    words = [(own, _word(scenario, client, fed, own, begins)) for client, own in answers.items()]
    wrong = [word for _, (right, word) in words if not right]
    word = wrong[0] if wrong else next(word for own, (_, word) in words if own)
    many = f" ({len(words) - len(wrong)} of {len(words)} queries are right)" if len(words) > 1 else ""
    known: dict[int, set[str]] = {}
    for line in told:
        known.setdefault(line["instant"], set()).add(line["rows"])

    def same(line: Mapping[str, Any]) -> bool | None:
        return None if scenario.distinct or line["instant"] not in known else line["rows"] in known[line["instant"]]

    return word + many, same


def _word(
    scenario: Scenario, client: int, fed: Sequence[StreamElement], told: Sequence[Mapping[str, Any]], begins: int
) -> tuple[bool, str]:
    """Whether a client was told what its query gives over what was fed, and how far."""
    service = SERVICES[scenario.system]
    query, text = continuous(scenario, client)
    header = RunHeader(
        service.engine, query, text, "rspql", profile(service.semantics), fed[-1].time, begins * 1_000_000, factor=1.0,
        evaluator="changes" if service.engine == "live" else None,
    )  # fmt: skip
    hands = [Fed(each.sequence, each.time, (begins + each.time) * 1_000_000, (begins + each.time) * 1_000_000,
                 len(each.added)) for each in fed]  # fmt: skip
    verdict = check(Run(header, tuple(map(_answer, told)), tuple(hands)), definition(fed), 0, JudgingRules())
    said = f"{verdict.judgement}, precision {verdict.precision:.3f}, recall {verdict.recall:.3f}"
    right = verdict.judgement in {Judgement.RIGHT, Judgement.LATE}
    return right, f"{said} ({verdict.reason})" if verdict.reason else said


def _answer(line: Mapping[str, Any]) -> Answer:
    return replace(decode_answer(dumps(line["answer"])), received=line["received"] * 1_000_000)


def freshness(answers: Sequence[tuple[int, int, int]], applied: Sequence[int]) -> list[int]:
    """How long (ms) after each change each client had an answer that was asked for after it.

    ``answers`` are (client, received, took), ``applied`` when the server changed; ms.
    """
    found: list[int] = []
    by_client: dict[int, list[tuple[int, int]]] = {}
    for client, received, took in answers:
        by_client.setdefault(client, []).append((received - took, received))
    for asked in by_client.values():
        asked.sort()
        begun = [at for at, _ in asked]
        for change in applied:
            place = bisect_right(begun, change)
            if change >= begun[0] and place < len(asked):
                found.append(asked[place][1] - change)
    return found
