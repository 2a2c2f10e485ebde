"""Comparison of runs and capacities with a baseline: measurements, changes beyond tolerance, output formats."""
