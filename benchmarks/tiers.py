"""Is `--tier auto` ever much slower than the better tier? And what does a run cost that finds no compiled code?

`python -m benchmarks.tiers [EVENTS …]`: the command over so many events, in CPU seconds with all that it starts; where the
interpreter was three times slower, it is not tried with larger inputs. `python -m benchmarks.tiers cold [EVENTS …]`: by the
clock, as the compiler works beside the run."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.processor import processor_seconds
from coincide.engines.warming import EXAMPLES

SIZES = (10, 1_000, 5_000, 20_000, 50_000, 200_000, 1_000_000)
COLD_SIZES = (300_000,)
KEYS, RUNS = 1_000, 2
TIERS = ("interpreter", "kernel", "auto")
RULES = {{"opera": "ce"}.get(language, language): text for language, text in EXAMPLES if "two" not in text}
HOPELESS = 3.0


def write_events(path: Path, events: int) -> None:
    rows = (f"{'abcdefgh'[number * 5 // 3 % 8]},{number},k{number * 7919 % KEYS},{number % 11}\n" for number in range(events))
    with path.open("w", encoding="ascii") as file:
        file.write("type,time,k,v\n")
        file.writelines(rows)


def command(rules: Path, events: Path, tier: str) -> list[str]:
    coincide = [sys.executable, "-c", "from coincide.cli.main import entry; entry()", "run", str(rules)]
    return [*coincide, "--events", str(events), "--out", str(events.with_name("out.jsonl")), "--tier", tier]


def sweep(folder: Path, sizes: Sequence[int]) -> None:
    worst = 0.0
    print(
        f"\nCPU seconds by tier\n  {'':<12} {'events':>10} " + " ".join(f"{tier:>12}" for tier in TIERS) + f" {'auto/better':>12}"
    )
    for language, text in RULES.items():
        (rules := folder / f"rules.{language}").write_text(text)
        tiers: Sequence[str] = TIERS
        for size in sizes:
            write_events(folder / "events.csv", size)
            took = {tier: _least(command(rules, folder / "events.csv", tier)) for tier in tiers}
            better = min(seconds for tier, seconds in took.items() if tier != "auto")
            worst = max(worst, took["auto"] / better)
            if took.get("interpreter", 0.0) > HOPELESS * took["kernel"]:
                tiers = TIERS[1:]
            figures = " ".join(f"{took[tier]:>12.2f}" if tier in took else f"{'':>12}" for tier in TIERS)
            print(f"  {language:<12} {size:>10,} {figures} {took['auto'] / better:>12.2f}", flush=True)
    print(f"  the worst: {worst:.2f} (aim: at most 1.20)")


def _least(line: list[str]) -> float:
    return min(processor_seconds(line) for _ in range(RUNS))


def cold(folder: Path, sizes: Sequence[int]) -> None:
    print(f"\nSeconds by the clock\n  {'':<12} {'events':>10} {'cold':>8} {'warm':>8} {'aim':>8}")
    for language, text in RULES.items():
        (rules := folder / f"rules.{language}").write_text(text)
        for size in sizes:
            write_events(folder / "events.csv", size)
            line = command(rules, folder / "events.csv", "auto")
            with tempfile.TemporaryDirectory() as empty:
                first = _by_the_clock(line, {"XDG_CACHE_HOME": empty})
                time.sleep(1)
            warm = min(_by_the_clock(line, {}) for _ in range(RUNS))
            print(f"  {language:<12} {size:>10,} {first:>8.1f} {warm:>8.1f} {1.5 * warm + 2:>8.1f}", flush=True)


def _by_the_clock(line: list[str], environment: dict[str, str]) -> float:
    begun = time.perf_counter()
    subprocess.run(line, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return time.perf_counter() - begun


def main(arguments: Sequence[str] = ()) -> None:
    is_cold = arguments[:1] == ["cold"]
    sizes = tuple(map(int, arguments[1:] if is_cold else arguments))
    with tempfile.TemporaryDirectory() as folder:
        if is_cold:
            cold(Path(folder), sizes or COLD_SIZES)
        else:
            sweep(Path(folder), sizes or SIZES)


if __name__ == "__main__":
    main(sys.argv[1:])
