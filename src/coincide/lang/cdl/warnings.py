"""What is accepted but most likely not meant (sections 5 and 8)."""

from __future__ import annotations

from collections.abc import Iterator, Set

from coincide.errors import Diagnostic, nearest
from coincide.expr.functions import number_text
from coincide.expr.tree import Call, Expr, Literal, Reference, conjuncts
from coincide.lang.cdl.conditions import condition_of
from coincide.lang.cdl.definition import AnySource, Collection, Description, Node, TimeEvent, version_text
from coincide.lang.cdl.equality import floor
from coincide.lang.cdl.names import Names
from coincide.lang.cdl.preferences import PREFERENCES
from coincide.lang.cdl.terms import Group, groups
from coincide.syntax import walk


def warnings_of(cd: Description) -> list[Diagnostic]:
    names = Names(cd)
    found = groups(cd, names)
    return [*_replaced(cd), *_never(cd, names, found), *_unused(cd, found), *_unbounded(cd), *_too_short(cd), *_lacking(cd)]


def _warning(message: str, node: Node, name: str, hint: str | None = None) -> Diagnostic:
    return Diagnostic(message, node.span, "warning", hint, name)


def _replaced(cd: Description) -> Iterator[Diagnostic]:
    for old in cd.replaced:
        new = version_text(cd.version)
        yield _warning(f"version {version_text(old.version)} of cd '{cd.id}' is replaced by version {new}", old, "replaced")


def _never(cd: Description, names: Names, found: list[Group]) -> Iterator[Diagnostic]:
    """Terms that contradict themselves are left out, and here no other is left."""
    possible = {group.trigger for group in found}
    for trigger in cd.triggers:
        if trigger not in possible:
            message = f"expression '{trigger}' is never true: each of its terms demands a predicate and its opposite"
            yield _warning(message, names.expressions[trigger], "never")


def _unused(cd: Description, found: list[Group]) -> Iterator[Diagnostic]:
    used = frozenset[int]().union(*(group.sources for group in found))
    for number, source in enumerate(cd.sources):
        if number not in used:
            yield _warning(f"no term uses source '{source.anchor}'", source, "unused")


def _too_short(cd: Description) -> Iterator[Diagnostic]:
    """The trigger is forgotten before its time event comes."""
    for source in cd.sources:
        if isinstance(source, TimeEvent) and source.relative and isinstance(source.value, Literal):
            delay, within = source.value.value, cd.within_of(cd.sources[cd.index[source.trigger]])
            if isinstance(delay, float) and within is not None and within < delay:
                message = (
                    f"'{source.trigger}' is forgotten after {number_text(within)} ms, before time event '{source.anchor}' is due"
                )
                yield _warning(message, source, "within", f"a within of {number_text(delay)} ms or more keeps it until then")


def _lacking(cd: Description) -> Iterator[Diagnostic]:
    """Columns that a CSV file does not have: they are null, and so is all that is looked up by such a key."""
    headers = {}
    for provider in (*cd.shared, *cd.providers):
        header = headers[provider.name] = getattr(provider.opened, "header", None)
        if header is not None and provider.key not in header:
            yield _no_column(provider.name, provider.key or "", header, provider, "nothing is found in it")
    for node, tree in _values(cd):
        for call in walk(tree):
            if isinstance(call, Call) and call.name == "lookup":
                name, column = (str(getattr(argument, "value", "")) for argument in call.arguments[:2])
                header = headers.get(name)
                if header is not None and isinstance(call.arguments[1], Literal) and column not in header:
                    yield _no_column(name, column, header, node, "the value is null")


def _no_column(provider: str, column: str, header: Set[str], node: Node, so: str) -> Diagnostic:
    hint = nearest(column, header) or f"there are {', '.join(sorted(header)) or 'none'}"
    return _warning(f"provider '{provider}' has no column '{column}': {so}", node, "column", hint)


def _values(cd: Description) -> Iterator[tuple[Node, Expr]]:
    """What may hold look-ups, with the nodes in which it stands."""
    for source in cd.sources:
        for attribute in () if isinstance(source, TimeEvent) else source.attributes:
            if attribute.lookup is not None:
                yield attribute, attribute.lookup
            yield from ((part, value) for part in attribute.filters for value in part.values)
    yield from ((part, part.value) for part in cd.computations)
    yield from ((part, value) for part in cd.predicates for value in part.arguments)
    yield from ((part, part.value) for event in cd.events for part in event.attributes)


def _unbounded(cd: Description) -> Iterator[Diagnostic]:
    for source, hint in unbounded(cd):
        yield _warning(f"nothing bounds how long messages of '{source.anchor}' are kept", source, "unbounded", hint)


def unbounded(cd: Description) -> Iterator[tuple[AnySource, str]]:
    """Sources whose messages nothing makes forgotten, and what would."""
    names = Names(cd)
    found = groups(cd, names)
    for number, source in enumerate(cd.sources):
        if isinstance(source, TimeEvent) or cd.within_of(source) is not None:
            continue
        if not _is_bounded(number, cd, names, found):
            yield source, _hint(number, cd, found)


def _hint(number: int, cd: Description, found: list[Group]) -> str:
    """The longest delay of a time event in the same group must still fit."""
    times = {s for group in found if number in group.sources for s in group.pos if isinstance(cd.sources[s], TimeEvent)}
    longest = max((delay for s in times if (delay := _delay(s, cd)) is not None), default=None)
    if longest is None:
        return f"give it a maximum age, such as {_within('1 hour', cd)}, or give the cd one"
    return f"give it a maximum age of {number_text(longest)} ms or more, {_within(number_text(longest), cd)}"


def _within(age: str, cd: Description) -> str:
    """As the file would say it."""
    in_yaml = cd.span is not None and cd.span.file.endswith(".yaml")
    return f"within: {age}" if in_yaml else f'within="{age}"'


def _delay(number: int, cd: Description) -> float | None:
    """How long after a message its time event comes, over all that trigger one another; None if that is not constant."""
    source = cd.sources[number]
    if not isinstance(source, TimeEvent):
        return 0.0
    before = _delay(cd.index[source.trigger], cd)
    own = source.value.value if isinstance(source.value, Literal) and source.relative else None
    return before + own if before is not None and isinstance(own, float) else None


def _is_bounded(number: int, cd: Description, names: Names, found: list[Group]) -> bool:
    waiting = [group for group in found if number in group.pos and len(group.pos) > 1]
    remembered = [group for group in found if number in group.sources - group.pos]
    if waiting and not (_keeps_one(names) or all(_ends(number, group, cd) for group in waiting)):
        return False
    return all(_is_consumed(number, group, cd) for group in remembered) or floor(number, names) is not None


def _ends(number: int, group: Group, cd: Description) -> bool:
    """Does it trigger a time event of the group? Instances with it go when that is over."""
    anchor = cd.sources[number].anchor
    return any(isinstance(t := cd.sources[s], TimeEvent) and t.trigger == anchor for s in group.pos)


def _keeps_one(names: Names) -> bool:
    """A preference that keeps one of equivalent instances."""
    return any(
        p.better is not None and (p.other is None or _keeps_one_of(names.expressions[p.other].logic, names))
        for p in names.cd.preferences
    )


def _keeps_one_of(tree: Expr, names: Names) -> bool:
    if isinstance(tree, Reference):
        if tree.name in names.expressions:
            return _keeps_one_of(names.expressions[tree.name].logic, names)
        condition = condition_of(names.predicates[tree.name])
        return isinstance(condition, Call) and condition.name in PREFERENCES and PREFERENCES[condition.name].keeps_one
    return any(_keeps_one_of(operand, names) for operand in conjuncts(tree) if operand is not tree)


def _is_consumed(number: int, group: Group, cd: Description) -> bool:
    source = cd.sources[number]
    if not isinstance(source, Collection):
        return False
    return not source.reuse if source.reuse is not None else not group.pos
