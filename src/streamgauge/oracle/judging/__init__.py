"""Judging: expected reports beside answers, scores, delays, borders, the verdict."""
