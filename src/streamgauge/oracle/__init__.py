"""The oracle: the reports that are due (``expected``), their comparison with a run, and the cause of each error."""
