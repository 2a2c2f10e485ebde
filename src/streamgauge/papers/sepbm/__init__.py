"""SEP-BM (Murth et al., 2010): its figures beside ours, and publishers, channels and systems of other kinds."""
