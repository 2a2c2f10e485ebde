"""Ratios against a peer or the naive way, both sides in one run; RESULTS.md keeps what was measured."""
