"""What publishers send: elements of one time together, a broker's facts as changes."""

import httpx
import pytest

from streamgauge.harness.process import ProgramError
from streamgauge.query.updates import UpdateContext, read_update
from streamgauge.sparql.needs import Looks
from streamgauge.sparql.updates import change as changed
from streamgauge.suites.crowds.updates import Publisher, replaced, streamed, updates
from tests.suites.crowds.boards import DEPARTURES, LATE, elements


def test_elements_of_one_time_are_one_request():
    result = streamed(elements(3, 1000))
    assert [item.time for item in result] == [0, 1000, 2000]
    assert {item.content.count(b"\n") for item in result} == {DEPARTURES + 1}
    assert result[0].path.count("/") == 2


def test_a_broker_is_told_what_is_over_and_all_that_holds():
    sent = list(replaced(updates(elements(4, 1000), 500)))
    facts: set[tuple[str, str, str]] = set()
    for item, update in zip(sent, updates(elements(4, 1000), 500), strict=True):
        for change in read_update(item.content.decode(), UpdateContext(str)):
            deleted, inserted = changed(change, lambda *_: (), 1000, Looks(1000))
            facts = (facts - set(deleted)) | set(inserted)
        assert facts == set(update.triples)
    late = [b"DELETE" in item.content for item in sent]
    assert late == [False, False, True, False]
    assert LATE.encode() in sent[2].content


def test_what_was_not_taken_is_told():
    def nowhere(request):
        httpx.post(f"http://127.0.0.1:9{request.path}", content=request.content)

    publisher = Publisher(nowhere, replaced(updates(elements(1, 1000), 500)), 0)
    publisher.start()
    publisher.join()
    with pytest.raises(ProgramError, match="publishing failed: Connect"):
        publisher.check("x")
