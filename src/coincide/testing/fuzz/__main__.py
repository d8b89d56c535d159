"""The command."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from coincide.errors import CoincideError
from coincide.testing.fuzz.corpus import DEFAULT
from coincide.testing.fuzz.events import EventFuzzer
from coincide.testing.fuzz.rules import RuleFuzzer
from coincide.testing.fuzz.states import StateFuzzer
from coincide.testing.fuzz.work import Fuzzer, Outcome, outcomes, random_of, tried

FUZZERS: dict[str, Callable[[Path], Fuzzer]] = {
    "rules": RuleFuzzer,
    "events": EventFuzzer,
    "state": StateFuzzer,
    "spark": lambda corpus: EventFuzzer(corpus, spark=True),
}

SLOWEST = 5
"""How many attempts are named for the time that they took."""

DESCRIPTION = """\
Changes the conformance cases at random and looks for internal errors, for runs that take too long and for differences
between tiers. The same seed gives the same mutants. Exit code 1 if anything was found.
"""


def main(argv: list[str] | None = None) -> int:
    given = _arguments().parse_args(argv)
    logging.disable()  # rules say what they meet at run time, thousands of times
    try:
        fuzzer = FUZZERS[given.what](given.corpus.absolute())
        return _one(fuzzer, given) if given.only is not None else _many(fuzzer, given)
    except CoincideError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    finally:
        logging.disable(logging.NOTSET)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m coincide.testing.fuzz", description=DESCRIPTION)
    parser.add_argument(
        "what", choices=FUZZERS, help="rule files; dirty events on both tiers; snapshots; dirty events on Spark, too"
    )
    parser.add_argument("--count", type=int, default=1000, metavar="N", help="how many mutants (1000)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the random numbers (0)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the number of the first mutant (0)")
    parser.add_argument("--only", type=int, metavar="N", help="try this one mutant, here, and show it")
    parser.add_argument("--seconds", type=float, metavar="S", help="stop after so long")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (1)")
    parser.add_argument("--corpus", type=Path, default=DEFAULT, metavar="DIR", help=f"the cases ({DEFAULT})")
    return parser


def _one(fuzzer: Fuzzer, given: argparse.Namespace) -> int:
    print(fuzzer.attempt(random_of(given.seed, given.only)).shown())
    outcome = tried(fuzzer, given.seed, given.only, armed=False)
    print(f"--- {outcome.word}", outcome.detail, sep="\n", flush=True)
    return 1 if outcome.finding else 0


def _many(fuzzer: Fuzzer, given: argparse.Namespace) -> int:
    words: Counter[str] = Counter()
    found: dict[str, list[Outcome]] = {}
    slowest: list[Outcome] = []
    begin = time.perf_counter()
    for outcome in outcomes(fuzzer, given.seed, range(given.first, given.first + given.count), given.jobs):
        words[outcome.word] += 1
        slowest = sorted([*slowest, outcome], key=lambda o: -o.seconds)[:SLOWEST]
        if outcome.finding is not None:
            found.setdefault(outcome.finding, []).append(outcome)
        if given.seconds is not None and time.perf_counter() - begin > given.seconds:
            break
    seconds = time.perf_counter() - begin
    print(f"{given.what}: {words.total():,} mutants in {seconds:.1f} s ({words.total() / seconds:,.0f}/s), seed {given.seed}")
    print("  " + ", ".join(f"{word} {count:,}" for word, count in words.most_common()))
    print("  slowest: " + ", ".join(f"{outcome.number} ({outcome.seconds:.1f} s)" for outcome in slowest))
    for finding, times in sorted(found.items(), key=lambda item: -len(item[1])):
        print(f"{len(times):6,}  {finding}")
        print(f"        python -m coincide.testing.fuzz {given.what} --seed {given.seed} --only {times[0].number}")
        if times[1:]:
            print("        also " + ", ".join(str(outcome.number) for outcome in times[1:]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
