"""A broker from Python: ``for told in Client(url).subscribe("channel")``, or the same with AsyncClient, awaited."""

from streamgauge.servers.broker.client import Acknowledged, AsyncClient, AwayError, BrokerError, Client, Standing, Told

__all__ = ["Acknowledged", "AsyncClient", "AwayError", "BrokerError", "Client", "Standing", "Told"]
