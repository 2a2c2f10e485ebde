"""The W3C's test suites of SPARQL, and a runner for them: ``python -m tests.w3c --data FOLDER``."""
