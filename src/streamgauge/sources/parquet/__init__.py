"""Answers as Parquet files in a folder, one for so many answers or so much time: ``parquet:FOLDER``."""

from streamgauge.sources.contract import Address, Sink, read_options

SCHEMES = ("parquet",)


def open_sink(address: Address) -> Sink:
    """The files of a folder, which is made when it is not there; SourceError where they cannot be written."""
    from streamgauge.sources.parquet.sink import ParquetOptions, ParquetSink

    return ParquetSink(address, read_options(ParquetOptions, address))
