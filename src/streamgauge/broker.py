"""A broker from Python: ``for told in Client(url).subscribe("channel")``, or the same with AsyncClient, awaited."""

from streamgauge.servers.broker.calls import Acknowledged, AwayError, BrokerError, Standing, Told
from streamgauge.servers.broker.client import AsyncClient, Client

__all__ = ["Acknowledged", "AsyncClient", "AwayError", "BrokerError", "Client", "Standing", "Told"]
