"""Transports in and out, one file each."""
