"""SPARQL algebra compiled to Spark: all windows of a stream in one job, the window as a column."""
