"""Running experiments, judging runs, measuring them."""
