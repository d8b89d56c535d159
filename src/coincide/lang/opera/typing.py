"""Types of what `with` expressions refer to, as far as `event` declarations tell them."""

from __future__ import annotations

from collections.abc import Mapping

from coincide.errors import Diagnostic, RuleError
from coincide.expr.functions import NUMBER
from coincide.expr.tree import Reference
from coincide.lang.opera.check import ENVELOPE_TYPES
from coincide.lang.opera.definition import Bind, EventDeclaration, Expression, OfType, aliased_items
from coincide.lang.opera.functions import AGGREGATES
from coincide.lang.shared.eventsets import types
from coincide.syntax import walk

Declared = Mapping[str, EventDeclaration]

ANY_RESULT = frozenset({"first", "last"})
"""Aggregates whose result is of the type of what they are of."""


class WithTypes:
    """The type of a reference: a parameter's is that of the attributes compared with it, an alias's that of its events."""

    def __init__(self, body: Expression, declared: Declared) -> None:
        self.declared = declared
        self.parameters: dict[str, str | None] = {}
        self.aliases: dict[str, list[str]] = {}
        for node in walk(body):
            if isinstance(node, OfType):
                self._bind(node)
        for item in aliased_items(body):
            assert item.alias is not None
            # `all` names no type: what an alias holds is then not known
            self.aliases.setdefault(item.alias, []).extend(types(item.events) or [""])

    def _bind(self, node: OfType) -> None:
        for bind in node.terms:
            if isinstance(bind, Bind) and self.parameters.get(bind.parameter) is None:
                self.parameters[bind.parameter] = self._attribute(node.name, bind.attribute)

    def _attribute(self, name: str, attribute: str) -> str | None:
        known = dict(self.declared[name].attributes) if name in self.declared else {}
        return (ENVELOPE_TYPES | known).get(attribute)

    def __call__(self, reference: Reference) -> str | None:
        if reference.alias is None:
            return self.parameters.get(reference.name)
        function, opened, rest = reference.name.partition("(")
        if not opened:
            return self._of_alias(reference.alias, reference.name)
        if function == "count":
            return NUMBER
        found = self._of_alias(reference.alias, rest.removesuffix(")"))
        if function == "sum" and found not in (NUMBER, "timestamp", None):
            raise _error(f"'sum' wants a number, not a {found}")
        return found if function in ANY_RESULT else AGGREGATES[function]

    def _of_alias(self, alias: str, attribute: str) -> str | None:
        """Known where all types under the alias are declared and those that have the attribute agree."""
        names = self.aliases.get(alias, [])
        if any(name not in self.declared for name in names) and attribute not in ENVELOPE_TYPES:
            return None
        kinds = {kind for name in names if (kind := self._attribute(name, attribute)) is not None}
        if names and not kinds:
            raise _error(f"event type '{names[0]}' has no attribute '{attribute}'")
        return kinds.pop() if len(kinds) == 1 else None


def _error(message: str) -> RuleError:
    return RuleError(Diagnostic(message))
