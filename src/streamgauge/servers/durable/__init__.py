"""Durable sessions: what a restarted session needs to give the answers that one without interruption would give.

The journal keeps the elements that windows may still need, the positions of sources, and the numbers of answers. A
restarted session takes these elements in again; their answers were numbered before, so that none of them is sent. This
is exact because a semantics is deterministic; nothing of an evaluator is stored, so that any version reads the journal.
"""
