"""Experiments: the declared file, the plan of its runs, doing them."""
