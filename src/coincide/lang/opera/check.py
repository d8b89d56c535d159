"""What resolved definitions must satisfy: the errors of the specification's section 2.3 that are not about names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from coincide.errors import Diagnostic, RuleError, nearest
from coincide.expr.tree import Expr, Reference
from coincide.expr.typing import check_condition
from coincide.lang.opera.definition import (
    All,
    Atom,
    Bind,
    Condition,
    Definition,
    Difference,
    Element,
    EventDeclaration,
    EventSet,
    Expression,
    Group,
    Intersection,
    Iteration,
    OfSet,
    OfType,
    Parallel,
    Terms,
    Timing,
    nullable,
)
from coincide.lang.shared.eventsets import FILTER_FUNCTIONS, types
from coincide.source import Span
from coincide.syntax import walk

ENVELOPE_TYPES = {"type": "string", "id": "string", "source": "string", "time": "number"}


class Checker:
    """Checks against the declarations and the composite types of a file."""

    def __init__(self, declared: Mapping[str, EventDeclaration], composites: frozenset[str]) -> None:
        self.declared = declared
        self.composites = composites

    def expression(self, body: Expression, around: tuple[EventSet, ...] = ()) -> None:
        """Everything that one expression can get wrong by itself. `around` are the domains of enclosing groups."""
        _check_nullable(body)
        if isinstance(body, Atom):
            self._atom(body, around)
        if isinstance(body, Group):
            self.events(body.domain)
            around = (*around, body.domain)
        for part in body.children:
            if isinstance(part, Expression):
                self.expression(part, around)

    def _atom(self, atom: Atom, around: tuple[EventSet, ...]) -> None:
        for events in (*(item.events for item in atom.items), *([atom.domain] if atom.domain else [])):
            self.events(events)
        if atom.domain is None or atom.negated:
            return
        domains = [plain_types(domain) for domain in (atom.domain, *around)]
        known = {name for domain in domains if domain is not None for name in domain}
        missing = [name for item in atom.items for name in types(item.events) if name not in known]
        if missing and None not in domains:
            raise _error(f"'{missing[0]}' is not in the input domain", atom.span)

    def events(self, events: EventSet) -> None:
        for node in walk(events):
            if isinstance(node, OfType):
                self._type(node)
            elif isinstance(node, OfSet) and _mentions(node.terms, "id"):
                self._no_ids(types(node.contents), node.span)

    def _type(self, node: OfType) -> None:
        if node.name == "heartbeat":
            raise _error("heartbeats never reach a detector", node.span)
        if _mentions(node.terms, "id"):
            self._no_ids([node.name], node.span)
        if node.name in self.declared:
            self._declared(node, dict(self.declared[node.name].attributes) | ENVELOPE_TYPES)

    def ids(self, body: Expression) -> None:
        """Only that no filter reads generated ids, of composite types that other files make."""
        for node in walk(body):
            if isinstance(node, OfType) and _mentions(node.terms, "id"):
                self._no_ids([node.name], node.span)
            elif isinstance(node, OfSet) and _mentions(node.terms, "id"):
                self._no_ids(types(node.contents), node.span)

    def _no_ids(self, names: Iterable[str], span: Span | None) -> None:
        for name in names:
            if name in self.composites:
                raise _error(f"the ids of composite type '{name}' are generated and cannot be used", span)

    def _declared(self, node: OfType, attributes: Mapping[str, str]) -> None:
        for name in _references(node.terms):
            if name not in attributes:
                raise _error(f"event type '{node.name}' has no attribute '{name}'", node.span, nearest(name, attributes))
        for term in node.terms:
            if isinstance(term, Condition):
                _check_types(term.test, attributes, node.span)

    def parameters(self, body: Expression) -> None:
        """Every parameter is bound by an item, and compares attributes of one type."""
        bound = {bind.parameter for bind in bindings_of_items(body)}
        kinds: dict[str, str] = {}
        for node in walk(body):
            if isinstance(node, Bind) and node.parameter not in bound:
                raise _error(f"no item binds the parameter '{node.parameter}'", node.span)
            if isinstance(node, OfType) and node.name in self.declared:
                self._same_types(node, kinds)

    def _same_types(self, node: OfType, kinds: dict[str, str]) -> None:
        attributes = dict(self.declared[node.name].attributes) | ENVELOPE_TYPES
        for bind in node.terms:
            if isinstance(bind, Bind):
                kind = attributes[bind.attribute].replace("timestamp", "number")
                known = kinds.setdefault(bind.parameter, kind)
                if known != kind:
                    raise _error(f"cannot compare a {known} with a {kind}", node.span)

    def own_use(self, definitions: Iterable[Definition]) -> None:
        """No detector uses, directly or through others, its own detections."""
        uses = {d.name: set(used_types(d.body)) & self.composites for d in definitions}
        for definition in definitions:
            if definition.name in _reached(definition.name, uses):
                raise _error(f"detector '{definition.name}' uses its own detections", definition.span)


def _reached(name: str, uses: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(uses[name])
    while waiting:
        if (other := waiting.pop()) not in found:
            found.add(other)
            waiting += uses.get(other, ())
    return found


def _check_nullable(body: Expression) -> None:
    if isinstance(body, Iteration) and nullable(body.body):
        raise _error("cannot iterate an expression that can match without any event", body.span)
    if isinstance(body, Timing) and nullable(body.first):
        raise _error("the first part of a timing must match at least one event", body.span)
    if isinstance(body, Parallel) and (nullable(body.left) or nullable(body.right)):
        raise _error("each side of || must match at least one event", body.span)


def _check_types(test: Expr, attributes: Mapping[str, str], span: Span | None) -> None:
    try:
        check_condition(test, lambda reference: attributes.get(reference.name), FILTER_FUNCTIONS)
    except RuleError as error:
        raise _error(error.diagnostics[0].message, span) from None


# What stands in event sets.


def plain_types(events: EventSet) -> list[str] | None:
    """The types of a plain union of types; None for any other set."""
    opened = list(walk(events))
    return None if any(isinstance(node, All | Difference | Intersection) for node in opened) else types(events)


def used_types(body: Element) -> list[str]:
    """Types that stand in any atom or domain."""
    return list(dict.fromkeys(node.name for node in walk(body) if isinstance(node, OfType)))


def parameters(body: Expression) -> tuple[str, ...]:
    return tuple(dict.fromkeys(node.parameter for node in walk(body) if isinstance(node, Bind)))


def bindings_of_items(body: Expression) -> Iterator[Bind]:
    """Those that bind: not in domains, not in `!E`, not right of a difference."""
    for node in walk(body):
        if isinstance(node, Atom):
            for item in node.matched:
                yield from _binding(item.events)


def _binding(events: EventSet) -> Iterator[Bind]:
    if isinstance(events, OfType | OfSet | All):
        yield from (term for term in events.terms if isinstance(term, Bind))
    if isinstance(events, Difference):
        yield from _binding(events.left)
    else:
        for part in events.children:
            if isinstance(part, EventSet):
                yield from _binding(part)


def _references(terms: Terms) -> Iterator[str]:
    for term in terms:
        if isinstance(term, Bind):
            yield term.attribute
        else:
            yield from (node.name for node in walk(term.test) if isinstance(node, Reference))


def _mentions(terms: Terms, name: str) -> bool:
    return name in _references(terms)


def _error(message: str, span: Span | None, hint: str | None = None) -> RuleError:
    return RuleError(Diagnostic(message, span, hint=hint))
