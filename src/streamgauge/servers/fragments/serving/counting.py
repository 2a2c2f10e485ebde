"""What a server of fragments counts, as metrics."""

from collections import Counter
from collections.abc import Iterator, Sequence

from streamgauge.servers.fragments.serving.dataset import DataSet
from streamgauge.servers.http.metrics import Metric


class Counts:
    """Requests by data set and status, bytes sent, bodies that were kept or made."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.bytes = self.kept = self.made = 0

    def metrics(self, datasets: Sequence[DataSet], held: int) -> Iterator[Metric]:
        """All of it, and what the data sets hold; ``held`` are the bytes of bodies that are kept."""
        asked = sorted(self.requests.items())
        name = "streamgauge_fragments"
        yield Metric(
            f"{name}_requests_total",
            "counter",
            "Requests answered.",
            tuple(({"dataset": dataset, "status": str(status)}, count) for (dataset, status), count in asked),
        )
        yield Metric(f"{name}_bytes_total", "counter", "Bytes of bodies sent.", (({}, self.bytes),))
        bodies = (({"from": "kept"}, self.kept), ({"from": "made"}, self.made))
        yield Metric(f"{name}_bodies_total", "counter", "Bodies that were there, and that were made.", bodies)
        yield Metric(f"{name}_kept_bytes", "gauge", "Bytes of bodies that are kept.", (({}, held),))
        quads = tuple(({"dataset": each.name}, each.size) for each in datasets)
        yield Metric(f"{name}_quads", "gauge", "Quads of a data set.", quads)
        versions = tuple(({"dataset": each.name}, each.store.version) for each in datasets)
        yield Metric(f"{name}_version", "gauge", "The version of a data set.", versions)
