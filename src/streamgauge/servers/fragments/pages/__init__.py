"""The fragments server: pages of data sets, their metadata and formats, their history, events."""
