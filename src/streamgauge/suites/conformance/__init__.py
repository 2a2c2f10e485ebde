"""Certifying: every engine on every conformance case, judged by the oracle; what deviates is listed or fails."""
