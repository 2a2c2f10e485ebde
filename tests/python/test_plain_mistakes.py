"""A mistake leaves the Python interface as its sentence: no frames and errors of ours above it."""

import asyncio
import traceback
from collections.abc import Callable

import pytest

import streamgauge
from streamgauge.model.mistake import MistakeError, plain_mistakes

QUERY = """SELECT ?s FROM NAMED WINDOW <urn:w> ON <urn:st> [RANGE PT5S STEP PT5S]
WHERE { WINDOW <urn:w> { ?s <urn:p> ?o } }"""
BAD = [(0, [("<urn:a>", "<urn:p>", "1")])]


def watched() -> None:
    list(streamgauge.watch(QUERY, BAD))


def gathered() -> None:
    streamgauge.watch(QUERY, BAD).gather()


def awaited() -> None:
    async def first() -> None:
        await anext(streamgauge.awatch(QUERY, BAD))

    asyncio.run(first())


@pytest.mark.parametrize(
    "call",
    [
        lambda: streamgauge.expect(QUERY, BAD),
        lambda: streamgauge.verify(QUERY, BAD, answers=[]),
        lambda: streamgauge.parse_query("SELECT"),
        lambda: streamgauge.profile("nothing"),
        lambda: streamgauge.load_run("/nowhere"),
        lambda: streamgauge.check("/nowhere"),
        lambda: streamgauge.watch("SELECT", BAD),
        watched,
        gathered,
        awaited,
    ],
)
def test_a_mistake_has_a_short_trace(call: Callable[[], object]):
    with pytest.raises(MistakeError) as mistake:
        call()
    error = mistake.value
    assert error.__suppress_context__
    assert error.__cause__ is None
    lines = "".join(traceback.format_exception(error)).splitlines()
    ours = [line for line in lines if "/streamgauge/" in line]
    assert len(ours) <= 3, "\n".join(lines)
    assert "\n".join(lines).endswith(str(error))


def test_every_other_error_keeps_its_trace():
    cause = KeyError("why")
    with pytest.raises(ValueError, match="fault") as fault, plain_mistakes:
        raise ValueError("fault") from cause
    assert fault.value.__cause__ is cause


def test_a_function_keeps_its_name_and_its_words():
    assert streamgauge.expect.__name__ == "expect"
    assert "without an engine" in (streamgauge.expect.__doc__ or "")
