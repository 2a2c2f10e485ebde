"""A broker from Python: ``for told in Client(url).subscribe("channel")``, or the same with AsyncClient, awaited."""

from streamgauge.servers.broker.client import Acknowledged, AsyncClient, Client, Standing, Told
from streamgauge.servers.broker.reconnection import AwayError, BrokerError

__all__ = ["Acknowledged", "AsyncClient", "AwayError", "BrokerError", "Client", "Standing", "Told"]
