"""YABench (Kolchin et al., ICWE 2016): its experiments next to ours, and its oracle's rules."""
