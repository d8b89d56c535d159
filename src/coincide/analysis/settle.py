"""Do the internal transitions of a machine literal come to rest? Tried at the load (ecl.md, section 2)."""

from __future__ import annotations

from coincide.analysis.automaton import Exploration
from coincide.analysis.letters import LimitExceeded, alphabet
from coincide.detection.machine.literal import ENDED, LiteralTransducer, NeverSettles
from coincide.errors import Diagnostic, RuleError
from coincide.lang.ecl.definition import Machine


def check_settles(machine: Machine) -> None:
    """Raises RuleError. Beyond the limit only the start is tried: an endless run may then be met later."""
    try:
        transducer = LiteralTransducer(machine)
    except NeverSettles:
        raise _never_settles(machine) from None
    if transducer.pushes_before_any_event:
        hint = "there is no event yet whose time it could have: push on a transition with 'on'"
        raise RuleError(Diagnostic(f"machine '{machine.name}' pushes before any event", machine.span, hint=hint))
    try:
        letters = alphabet([label.test for label in transducer.labels], machine.keys).letters
        exploration = Exploration(transducer, letters)
    except LimitExceeded:
        return
    if ENDED in exploration.numbers:
        raise _never_settles(machine)


def _never_settles(machine: Machine) -> RuleError:
    hint = "some transitions without 'on' enable one another for ever"
    text = f"the internal transitions of machine '{machine.name}' never settle"
    return RuleError(Diagnostic(text, machine.span, hint=hint))
