"""Servers: brokers and fragments servers that are named here, their channels and facts.

``connections`` are the named servers and how they are asked, ``brokers`` the pages of a broker, ``facts`` what a
fragments server says and when it holds, ``fragments`` the pages of one (docs/workbench-live.md).
"""

from streamgauge.workbench.rooms import Bench, Room
from streamgauge.workbench.rooms.servers.brokers import BrokerHandlers
from streamgauge.workbench.rooms.servers.connections import ServerHandlers
from streamgauge.workbench.rooms.servers.fragments import FragmentHandlers


def open_room(bench: Bench) -> Room:
    """The room."""
    about = "Brokers and fragments servers: channels and their answers as they change, publications, facts over time."
    servers = ServerHandlers()
    routes = [
        *servers.routes,
        *BrokerHandlers(servers.named, bench.leaving).routes,
        *FragmentHandlers(servers.named).routes,
    ]
    return Room("servers", "Servers", about, 4, routes, servers.named.close)
