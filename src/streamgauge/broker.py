"""A broker from Python: ``for told in Client(url).subscribe("channel")``, or the same with AsyncClient, awaited."""

from streamgauge.services.broker.calls import Acknowledged, AwayError, BrokerError, Standing, Told
from streamgauge.services.broker.client import AsyncClient, Client

__all__ = ["Acknowledged", "AsyncClient", "AwayError", "BrokerError", "Client", "Standing", "Told"]
