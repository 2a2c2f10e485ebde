"""Runs and capacities against a baseline: what is measured, what got worse beyond tolerance, and how it is shown."""
