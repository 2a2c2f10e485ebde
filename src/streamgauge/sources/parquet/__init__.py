"""Answers as Parquet files in a folder, a new file after a number of answers or some time: ``parquet:FOLDER``."""

from streamgauge.sources.contract import Address, Sink, read_options

SCHEMES = ("parquet",)


def open_sink(address: Address) -> Sink:
    """A sink that writes files into a folder, which it creates if necessary; SourceError if it cannot."""
    from streamgauge.sources.parquet.sink import ParquetOptions, ParquetSink

    return ParquetSink(address, read_options(ParquetOptions, address))
