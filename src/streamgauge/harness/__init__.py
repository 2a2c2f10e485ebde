"""Recording: an engine fed in a process of its own, everything observed kept."""
