"""What a broker hands over lands on disk, whole and in order, before it is answered."""

import time

import pyarrow.parquet as pq

from streamgauge.engines.spark.element_log import Landing
from streamgauge.engines.spark.pipeline import ANY_ORDER
from streamgauge.formats.lines import encode_element
from streamgauge.sources import Delivery, open_sink, open_source
from tests.notation import stream

PATIENCE_S = 300


def landed(folder) -> list[tuple[int, int, str]]:
    """Time, sequence number and subject of what is in the log."""
    files = sorted(folder.glob("*.parquet"))
    tables = [pq.read_table(file, columns=["time", "sequence", "subject"]) for file in files]
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]


def test_what_mqtt_hands_over_lands_in_order(mosquitto, tmp_path):
    """Numbered as it comes, whatever numbers and times it had: the batches know what is too late."""
    came = stream(" | ".join(f"{10 * n}: a{n} p b." for n in range(100)))
    url = f"mqtt://127.0.0.1:{mosquitto.port}/weather/all"
    source, sink = open_source(url, ANY_ORDER), open_sink(url)
    landing = Landing(tmp_path / "landed", source, skip=False, every_s=0.05)
    landing.start()
    for element in came[40:] + came[:40]:
        sink.send(encode_element(element))
    assert sink.close() == Delivery(100, 0)
    until = time.monotonic() + PATIENCE_S
    while len(landed(tmp_path / "landed")) < 100:
        assert landing.error is None
        assert time.monotonic() < until, "not all has landed"
        time.sleep(0.05)
    source.close()
    order = [*range(40, 100), *range(40)]
    assert landed(tmp_path / "landed") == [(10 * n, place, f"<urn:a{n}>") for place, n in enumerate(order)]
