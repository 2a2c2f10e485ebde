"""Workloads: generate(spark, seed, **size) and their queries, a folder each."""
