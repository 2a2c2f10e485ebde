"""The TPF Query Streamer (Taelman et al., ESWC 2016): its experiment done here, beside the paper's claims."""
