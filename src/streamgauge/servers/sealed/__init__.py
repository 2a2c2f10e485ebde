"""Sealed journals: files of a server that survive crashes, and tell damage from what was written."""
