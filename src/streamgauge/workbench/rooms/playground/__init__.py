"""The playground: a continuous query, a stream, two semantics; windows and reports drawn, and which differ and why.

``state`` is what a person typed; ``result`` its answer by the definition (``evaluation``, ``comparison``); ``timeline``
and ``replies`` show it; ``examples`` and ``stream_text`` fill it; ``recordings`` diagnoses an engine's answers.
"""

from streamgauge.workbench.rooms import Bench, Room
from streamgauge.workbench.rooms.playground.routes import routes


def open_room(bench: Bench) -> Room:
    """The room."""
    about = "A query, a stream, two semantics: which reports appear, vanish or change, and why."
    return Room("playground", "Playground", about, 2, routes(bench.folder))
