"""Where a data set's quads are kept: our stores beside what else could keep them, and how their cost grows."""
