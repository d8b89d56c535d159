"""Names: sets opened, expressions inlined, timers told from event types. What comes out is checked and can be planned."""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import replace

from coincide.errors import Diagnostic, RuleError, nearest
from coincide.lang.opera.attributes import resolved_attributes
from coincide.lang.opera.check import Checker, parameters
from coincide.lang.opera.definition import (
    All,
    Alternation,
    Atom,
    Attribute,
    Bind,
    Concatenation,
    Definition,
    Detect,
    Difference,
    EventDeclaration,
    EventSet,
    Expression,
    ExpressionDefinition,
    File,
    Group,
    Inlined,
    Intersection,
    Iteration,
    Limit,
    Named,
    OfSet,
    OfType,
    OwnTimer,
    Parallel,
    Sequence,
    SetDefinition,
    Sources,
    Statement,
    Timing,
    Union,
)
from coincide.source import Span
from coincide.syntax import walk

Scope = tuple[str, ...]
"""Timers in scope, outermost first."""


def resolve(statements: Several[Statement]) -> File:
    return _Resolver(statements).file()


class _Resolver:
    def __init__(self, statements: Several[Statement]) -> None:
        self.statements = statements
        self.sets: dict[str, SetDefinition] = {}
        self.expressions: dict[str, ExpressionDefinition | Detect] = {}
        self.declared: dict[str, EventDeclaration] = {}
        for statement in statements:
            self._define(statement)
        nodes = [node for statement in statements for node in walk(statement)]
        self.timers = {node.timer for node in nodes if isinstance(node, Timing)}
        self.composites = frozenset(s.name for s in statements if isinstance(s, Detect))
        self.checker = Checker(self.declared, self.composites)
        self.inlined: set[str] = set()
        self.contents: dict[str, EventSet] = {}

    def _define(self, statement: Statement) -> None:
        if isinstance(statement, Sources | Limit):
            return
        if statement.name in self.sets or statement.name in self.expressions or statement.name in self.declared:
            raise _error(f"'{statement.name}' is already defined", statement.span)
        if isinstance(statement, SetDefinition):
            self.sets[statement.name] = statement
        elif isinstance(statement, EventDeclaration):
            self.declared[statement.name] = statement
        else:
            self.expressions[statement.name] = statement

    def file(self) -> File:
        definitions = []
        for statement in self.statements:
            if isinstance(statement, SetDefinition):
                self.checker.events(self._opened(statement.name, statement.span, ()))
            elif isinstance(statement, Detect):
                definitions.append(self._definition(statement))
        for name, other in self.expressions.items():
            if name not in self.inlined and isinstance(other, ExpressionDefinition):
                self.checker.expression(self._inline(Inlined(name, span=other.span), (), ()))
        self.checker.own_use(definitions)
        limits = [self._limit(statement) for statement in self.statements if isinstance(statement, Limit)]
        return File(tuple(self.statements), tuple(definitions), tuple(limits))

    def _limit(self, statement: Limit) -> Limit:
        if statement.until is None:
            return statement
        until = self._events(statement.until, ())
        self.checker.events(until)
        wrong = next((node for node in walk(until) if isinstance(node, Bind | All)), None)
        if wrong is not None:
            raise _error("what ends a limit is named by type, without parameters", wrong.span or statement.span)
        return replace(statement, until=until)

    def _definition(self, statement: Detect) -> Definition:
        body = self._expression(statement.body, (), (statement.name,))
        self.checker.expression(body)
        self.checker.parameters(body)
        names = parameters(body)
        attributes: Several[Attribute] = resolved_attributes(statement, body, names, self.composites, self.declared)
        policy, restart = statement.policy, statement.restart
        condition = None
        if statement.condition is not None:
            *attributes, condition = attributes
        return Definition(statement.name, body, restart, policy, tuple(attributes), names, condition, span=statement.span)

    # Expressions. `stack` are the names that are being inlined.

    def _expression(self, node: Expression, scope: Scope, stack: tuple[str, ...]) -> Expression:
        if isinstance(node, Atom):
            items = tuple(replace(item, events=self._events(item.events, scope)) for item in node.items)
            domain = None if node.domain is None else self._events(node.domain, scope)
            return replace(node, items=items, domain=domain)
        if isinstance(node, Inlined):
            return self._inline(node, scope, stack)
        if isinstance(node, Concatenation | Sequence | Alternation):
            return replace(node, parts=tuple(self._expression(part, scope, stack) for part in node.parts))
        if isinstance(node, Iteration):
            return replace(node, body=self._expression(node.body, scope, stack))
        if isinstance(node, Group):
            return replace(node, body=self._expression(node.body, scope, stack), domain=self._events(node.domain, scope))
        if isinstance(node, Parallel):  # the sides are automata of their own: no timer of the outer one is seen there
            return replace(node, left=self._expression(node.left, (), stack), right=self._expression(node.right, (), stack))
        if isinstance(node, Timing):
            self._check_timer(node, scope)
            first = self._expression(node.first, scope, stack)
            return replace(node, first=first, second=self._expression(node.second, (*scope, node.timer), stack))
        return node

    def _check_timer(self, node: Timing, scope: Scope) -> None:
        if node.timer in self.sets or node.timer in self.expressions or node.timer in self.declared:
            raise _error(f"the timer name '{node.timer}' is already defined", node.timer_span)
        if node.timer in scope:
            raise _error(f"the timer '{node.timer}' hides an outer timer of the same name", node.timer_span)

    def _inline(self, use: Inlined, scope: Scope, stack: tuple[str, ...]) -> Expression:
        definition = self.expressions.get(use.name)
        if definition is None:
            hint = nearest(use.name, self.expressions)
            message = f"unknown expression '{use.name}'; write [{use.name}] to detect events of that type"
            raise RuleError(Diagnostic(message, use.span, hint=hint))
        if use.name in stack:
            raise _error(f"'{use.name}' is defined in terms of itself", use.span)
        self.inlined.add(use.name)
        return self._expression(definition.body, scope, (*stack, use.name))

    # Event sets. A name is a timer in scope, a named set or an event type, in this order.

    def _events(self, node: EventSet, scope: Scope, stack: tuple[str, ...] = ()) -> EventSet:
        if isinstance(node, Named):
            return self._named(node, scope, stack)
        if isinstance(node, Union):
            return replace(node, members=tuple(self._events(member, scope, stack) for member in node.members))
        if isinstance(node, Difference | Intersection):
            return replace(node, left=self._events(node.left, scope, stack), right=self._events(node.right, scope, stack))
        return node

    def _named(self, node: Named, scope: Scope, stack: tuple[str, ...]) -> EventSet:
        if node.name in scope:
            if node.terms:
                raise _error(f"the timer '{node.name}' takes no filter", node.span)
            return OwnTimer(node.name, span=node.span)
        if node.name in self.sets:
            return OfSet(node.name, node.terms, self._opened(node.name, node.span, stack), span=node.span)
        if node.name in self.timers:
            raise _error(f"the timer '{node.name}' is not in scope here", node.span)
        return OfType(node.name, node.terms, span=node.span)

    def _opened(self, name: str, use: Span | None, stack: tuple[str, ...]) -> EventSet:
        if name in stack:
            raise _error(f"set '{name}' is defined in terms of itself", use)
        if name not in self.contents:
            self.contents[name] = self._events(self.sets[name].events, (), (*stack, name))
        return self.contents[name]


def _error(message: str, span: Span | None) -> RuleError:
    return RuleError(Diagnostic(message, span))
