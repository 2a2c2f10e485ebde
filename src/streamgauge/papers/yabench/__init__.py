"""YABench (Kolchin et al., ICWE 2016): its experiments beside ours, and its oracle's rules."""
