"""A publisher of a stream's updates over HTTP: at the query service, at a broker."""

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import httpx

from streamgauge.formats.lines import encode_advance, encode_element
from streamgauge.model.element import StreamElement
from streamgauge.model.terms import Triple
from streamgauge.suites.crowds.programs import ProgramError
from streamgauge.suites.crowds.renewing import Update

PATIENCE_S = 60.0
LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class Publication:
    """An update as a request: when it is due (ms of the stream), where below the server's address, what is sent."""

    time: int
    path: str
    content: bytes
    kind: str


@dataclass(frozen=True, slots=True)
class Taken:
    """A publication that the server took: when it was due, sent and answered (ms since 1970), and the answer."""

    time: int
    sent: int
    answered: int
    said: bytes


def streamed(elements: Sequence[StreamElement]) -> list[Publication]:
    """Elements for the query service, those of one time together."""
    path = f"/streams/{elements[0].stream.replace('/', '%2F')}"
    return [
        Publication(
            at,
            path,
            b"".join([*(encode_element(each) for each in elements if each.time == at), encode_advance(at)]),
            "application/x-ndjson",
        )
        for at in sorted({element.time for element in elements})
    ]


def replaced(updates: Iterable[Update]) -> Iterator[Publication]:
    """Updates for a broker: what the one before said and this does not is deleted, all that this says is there."""
    before: set[Triple] = set()
    for update in updates:
        come = set(update.triples)
        text = f"{_data('DELETE', before - come)}{_data('INSERT', come)}"
        yield Publication(update.time, "/update", text.encode(), "application/sparql-update")
        before = come


def _data(verb: str, triples: Iterable[Triple]) -> str:
    lines = "".join(f"{' '.join(triple)} .\n" for triple in sorted(triples))
    return f"{verb} DATA {{\n{lines}}} ;\n" if lines else ""


def start(address: str, first: Publication, within: float) -> None:
    """Have a query service take the first update, with which engines start; ProgramError when one has not in time (s).

    A service's engines are programs, some of which take seconds to start.
    """
    elements = first.content.count(b"\n") - 1
    with httpx.Client(base_url=address, timeout=PATIENCE_S) as client:
        response = client.post(first.path, content=first.content, headers={"Content-Type": first.kind})
        if not response.is_success:
            raise ProgramError(f"the first update: {response.status_code} {response.text[:300]}")
        for _ in range(round(within / LOOK_S)):
            queries = client.get("/queries").json()["queries"]
            if failed := next((each["fault"] for each in queries if each["fault"]), None):
                raise ProgramError(f"an engine failed: {failed}")
            if all(each["elements"] >= elements for each in queries):
                return
            time.sleep(LOOK_S)
    raise ProgramError(f"engines have not taken in the first update within {within:.0f} s")


class Publisher(threading.Thread):
    """Sends publications to a server when their time has come; ``begins`` is the stream's time 0, ms since 1970."""

    def __init__(self, address: str, publications: Iterable[Publication], begins: int) -> None:
        super().__init__(name="streamgauge-publisher", daemon=True)
        self._address, self._publications, self._begins = address, tuple(publications), begins
        self._over = threading.Event()
        self.taken: list[Taken] = []
        self.failure = ""

    def run(self) -> None:
        """Until all are sent, or ``end``; ``failure`` says what went wrong."""
        try:
            with httpx.Client(base_url=self._address, timeout=PATIENCE_S) as client:
                for each in self._publications:
                    if self._over.wait(max(0.0, (self._begins + each.time) / 1000 - time.time())) or self.failure:
                        return
                    self._send(client, each)
        except (httpx.HTTPError, OSError) as error:
            self.failure = f"{type(error).__name__}: {error}"

    def _send(self, client: httpx.Client, each: Publication) -> None:
        sent = _now()
        response = client.post(each.path, content=each.content, headers={"Content-Type": each.kind})
        if response.is_success:
            self.taken.append(Taken(each.time, sent, _now(), response.content))
        else:
            self.failure = f"update at {each.time} ms: {response.status_code} {response.text[:300]}"

    def end(self) -> None:
        """No more."""
        self._over.set()
        self.join(PATIENCE_S)

    def check(self, name: str) -> None:
        """ProgramError when something was not taken, or nothing was."""
        if self.failure or not self.taken:
            raise ProgramError(f"{name}: publishing failed: {self.failure or 'nothing was taken'}")


def _now() -> int:
    return time.time_ns() // 1_000_000
