"""Attempts in a process of their own: one that crashes or hangs ends that process only, and the next one goes on behind it."""

from __future__ import annotations

import multiprocessing
import signal
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from random import Random
from typing import Protocol

import coincide

WAITING = 15
"""How many times longer an attempt may take than its share of the processor: the machine may be busy."""


class Attempt(Protocol):
    """One mutant, ready to be tried."""

    @property
    def limit(self) -> float:
        """Seconds of processor time that it may take."""

    def shown(self) -> str:
        """The input, for whoever wants to see it."""

    def run(self) -> str:
        """What came of it, in a word. Raises Difference, or anything that is a crash."""


class Fuzzer(Protocol):
    """Mutants by number: the same number and seed, the same mutant."""

    def attempt(self, random: Random) -> Attempt: ...


class Difference(Exception):
    """Two ways of doing the same do not agree."""


@dataclass(frozen=True)
class Outcome:
    """What came of one attempt. `finding` says what is wrong, in words that are the same for the same cause."""

    number: int
    word: str
    finding: str | None = None
    detail: str = ""
    seconds: float = 0.0
    """Of processor time."""


def random_of(seed: int, number: int) -> Random:
    return Random(f"{seed}:{number}")


def tried(fuzzer: Fuzzer, seed: int, number: int, armed: bool = True) -> Outcome:
    """One attempt in this process. `armed`: its end is the end of the process if it takes too long."""
    attempt = fuzzer.attempt(random_of(seed, number))
    if armed:
        _arm(attempt.limit)
    begin = time.process_time()
    outcome = _ran(attempt, number)
    _arm(0)
    return replace(outcome, seconds=time.process_time() - begin)


def _ran(attempt: Attempt, number: int) -> Outcome:
    try:
        return Outcome(number, attempt.run())
    except Difference as difference:
        text = str(difference)
        return Outcome(number, "difference", f"difference: {text.partition(chr(10))[0]}", text)
    except Exception as error:
        return Outcome(number, "crash", f"crash: {type(error).__name__} at {_place(error)}", traceback.format_exc())


def outcomes(fuzzer: Fuzzer, seed: int, numbers: range, jobs: int = 1) -> Iterator[Outcome]:
    """Of all attempts, as they come."""
    running = [_Worker(fuzzer, seed, numbers[job::jobs]) for job in range(min(jobs, len(numbers)))]
    try:
        while running:
            for ready in wait([worker.results for worker in running]):
                worker = next(worker for worker in running if worker.results is ready)
                yield from worker.received()
                if worker.is_done:
                    running.remove(worker)
    finally:
        for worker in running:
            worker.stop()


class _Worker:
    """A process that tries numbers one after another, and is started again behind an attempt that ended it."""

    def __init__(self, fuzzer: Fuzzer, seed: int, numbers: range) -> None:
        self._fuzzer, self._seed, self._numbers = fuzzer, seed, numbers
        self._start()

    @property
    def is_done(self) -> bool:
        return not self._numbers

    def received(self) -> Iterator[Outcome]:
        try:
            outcome: Outcome = self.results.recv()
        except EOFError:
            outcome = self._ended()
        self._numbers = self._numbers[1:]
        if self.is_done:
            self.stop()
        elif outcome.word in ("hang", "death"):
            self._start()
        yield outcome

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        self.results.close()

    def _start(self) -> None:
        # Forked, so that nothing is imported again.
        context = multiprocessing.get_context("fork")
        self.results, results = context.Pipe(duplex=False)
        self._process = context.Process(target=_work, args=(self._fuzzer, self._seed, self._numbers, results), daemon=True)
        self._process.start()
        results.close()

    def _ended(self) -> Outcome:
        self._process.join()
        self.results.close()
        code = self._process.exitcode or 0
        if code in (-signal.SIGPROF, -signal.SIGALRM):
            return Outcome(self._numbers[0], "hang", "hang: it took too long")
        return Outcome(self._numbers[0], "death", f"crash: the process ended with {code}")


def _work(fuzzer: Fuzzer, seed: int, numbers: Sequence[int], results: Connection) -> None:
    _limit_memory()
    for number in numbers:
        results.send(tried(fuzzer, seed, number))


def _arm(seconds: float) -> None:
    """Nobody handles these signals: they end the process, whatever it is at, compiled code included."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, seconds * WAITING)


def _limit_memory() -> None:
    import resource

    gigabytes = 8 * 1024**3
    resource.setrlimit(resource.RLIMIT_AS, (gigabytes, gigabytes))


def _place(error: BaseException) -> str:
    """The innermost function of the package on the way to the error."""
    package = Path(coincide.__file__).parent
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(str(package))]
    inside = [f for f in frames if "/testing/" not in f.filename] or frames
    return f"{Path(inside[-1].filename).relative_to(package)}:{inside[-1].name}" if inside else "nowhere"
