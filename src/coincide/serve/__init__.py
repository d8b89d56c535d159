"""`coincide serve`: a long-lived process that detects while events come, with HTTP at its side (extra `serve`)."""
