"""The prefix of a run that is too large to explain: its first elements, and the answers that they can cause.

Worked example: of elements at 0, 1,000, ..., 9,000 ms with 10 triples each and a limit of 45, those before 4,000 ms are
kept. The horizon is 3,999 ms, and answers that name later instants are dropped.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.run import Run


class NoPrefixError(ValueError):
    """A run without a representative prefix; the message says why."""


def prefix(
    run: Run,
    stream: Iterable[StreamElement],
    first_answers: Callable[[int], Sequence[Answer]],
    triples: int,
    answers: int,
) -> tuple[Run, tuple[StreamElement, ...]]:
    """The run up to at most ``triples`` triples and ``answers`` answers, and its elements.

    NoPrefixError if there is none. ``run`` may lack rows: ``first_answers(n)`` reads the first n answers with theirs. A
    run within the limits is whole.
    """
    elements: list[StreamElement] = []
    end = run.header.advanced_to
    size = 0
    for element in stream:
        size += len(element.added)
        if size > triples:
            # Before the time of the first element left out: a content at that time would be incomplete.
            end = min(end, element.time - 1)
            break
        elements.append(element)
    # The instant of the first answer left out: answers of one instant belong together.
    if len(run.answers) > answers:
        cut = run.answers[answers].instant
        end = end if cut is None else min(end, cut - 1)
    whole = end == run.header.advanced_to
    if not whole and any(answer.instant is None for answer in run.answers):
        raise NoPrefixError("its answers name no instants, so where they end in a part of the stream is not known")
    count = len(run.answers) if whole else sum((answer.instant or 0) <= end for answer in run.answers)
    kept = tuple(element for element in elements if element.time <= end)
    if not kept:
        raise NoPrefixError(f"its first element has more than {triples:,} triples")
    chosen = tuple(first_answers(count))
    if any(answer.instant is not None and answer.instant > end for answer in chosen):
        raise NoPrefixError("its answers are not in the order of their instants")
    fed = tuple(one for one in run.fed if one.time <= end)
    header = replace(run.header, advanced_to=end)
    return replace(run, header=header, answers=chosen, fed=fed), kept
