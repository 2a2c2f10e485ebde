"""The TPF Query Streamer (Taelman et al., ESWC 2016): its experiment, next to the paper's claims."""
