"""Limits of CPU seconds on machines that do much else."""

CONTENDED = 4
"""How many times as many CPU seconds the same work may take beside other work as on an idle machine.

Measured on two cores that share their caches: 2 to 3 times at a load of 11. Idle figures are those of benchmarks.
"""
