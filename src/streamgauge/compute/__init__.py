"""Evaluators: incremental (changes), all windows in one Spark job (spark), and what drives them."""
