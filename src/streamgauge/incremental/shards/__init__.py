"""Queries over several processes: which can be sharded (`keys`, `plan`), which triples go where, who merges."""
