"""`python -m benchmarks.peers [EVENTS [NAME …]]`: fewer events for a first look; some contestants only."""

from __future__ import annotations

import sys

from benchmarks.peers import EVENTS, main

if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS, sys.argv[2:])
