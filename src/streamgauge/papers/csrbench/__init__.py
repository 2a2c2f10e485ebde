"""CSRBench (Dell'Aglio et al., ISWC 2013): table 2 beside ours, and its oracle's rules."""
