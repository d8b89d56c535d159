"""The kernel tier: the compiled loop over the rows that matter, and what it reads and makes."""
