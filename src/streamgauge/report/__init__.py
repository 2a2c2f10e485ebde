"""Reports that people look at."""
