"""Drivers of the incremental evaluator: windows, facts that stand (landmark), fetched facts."""
