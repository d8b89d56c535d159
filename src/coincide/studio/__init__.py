"""`coincide studio`: rules, events and what is found, on a page in a browser of this machine (extra `serve`)."""
