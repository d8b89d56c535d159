"""Fuzzers as a command: `python -m coincide.testing.fuzz rules|events|state --count N --seed S`.

They change the conformance cases at random and look for what must never happen: an internal error, a run that does not come
to an end, two engines that disagree. The same seed gives the same inputs on every machine and in every process."""
