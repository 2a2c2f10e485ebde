"""Certification: every engine runs every conformance case, judged by the oracle; deviations are listed or fail."""
