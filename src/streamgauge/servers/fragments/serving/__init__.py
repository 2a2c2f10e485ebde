"""The fragments server: pages, metadata, caching, writing, events."""
