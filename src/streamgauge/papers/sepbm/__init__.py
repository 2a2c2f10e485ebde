"""SEP-BM (Murth et al., 2010): its figures next to ours, and publishers, channels and other systems."""
