"""What a run has found, for those who must look into it: one page."""
