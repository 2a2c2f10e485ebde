"""The incremental evaluator: a change of the facts gives the exact change of the solutions."""
