"""What files that must survive share: the note of the last acknowledged change, and the words for disks that refuse."""
