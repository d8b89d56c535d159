"""`python -m benchmarks.peers [--events N] [--questions K,join] [--page docs/performance.md] [NAME …]`: some contestants only."""

from __future__ import annotations

import argparse

from benchmarks.peers import EVENTS
from benchmarks.peers.comparison import compare
from benchmarks.peers.page import write_page
from benchmarks.peers.questions import QUESTIONS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers")
    parser.add_argument("--events", type=int, default=EVENTS, help="fewer for a first look")
    parser.add_argument("--questions", default=",".join(QUESTIONS), help="of " + ", ".join(QUESTIONS))
    parser.add_argument("--page", help="the page whose table is written")
    parser.add_argument("names", nargs="*", help="words of the contestants' names")
    given = parser.parse_args()
    found = [compare(name, given.events, given.names) for name in given.questions.split(",")]
    if given.page is not None:
        write_page(given.page, found)


if __name__ == "__main__":
    main()
