"""What feeds the incremental evaluator: windows, later the broker and the fragments client."""
