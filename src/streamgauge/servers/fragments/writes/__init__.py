"""Writes to data sets: facts added, replaced, expired, over HTTP, from files and from streams."""
