"""Live: continuous queries over running sources, answered in this process by the core of the query service.

``registrations`` are the queries with their sources and rates, ``places`` what may be opened, ``rows`` answers as
cells, ``chart`` their drawing, ``http`` the pages and the events (docs/workbench-live.md).
"""

from streamgauge.workbench.rooms import Bench, Room
from streamgauge.workbench.rooms.live.http import LiveRoom
from streamgauge.workbench.rooms.live.registrations import LiveRegistrations


def open_room(bench: Bench) -> Room:
    """The room."""
    about = "Continuous queries over running sources (files, MQTT, Kafka, events), as table and as chart."
    room = LiveRoom(LiveRegistrations(bench.folder, leaving=bench.leaving))
    return Room("live", "Live", about, 3, room.routes, room.close)
