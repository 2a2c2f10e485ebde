"""CSRBench (Dell'Aglio et al., ISWC 2013): its table 2 next to ours, and its oracle's rules."""
