"""CDL, drawn: a description as a graph, from messages on the left through computations and conditions to what is published."""

from __future__ import annotations

from collections.abc import Iterable

from coincide.draw.graph import Drawing
from coincide.draw.tree import Tree
from coincide.expr.print import expression_text
from coincide.expr.quantities import duration_text
from coincide.expr.tree import Alias, Expr, Literal, Reference
from coincide.lang.cdl.definition import AnySource, Collection, Description, Filter, Predicate, Preference, Source, TimeEvent
from coincide.lang.cdl.functions import COMPARISONS
from coincide.model.numbers import is_number
from coincide.model.stamp import MILLISECOND
from coincide.syntax import walk


def description(cd: Description) -> Drawing:
    return _Painter(cd).drawing()


def node_names(cd: Description) -> dict[str, str]:
    """Of nodes, by anchors."""
    painter = _Painter(cd)
    painter.drawing()
    return painter.names


class _Painter:
    def __init__(self, cd: Description) -> None:
        self.cd = cd
        self.tree = Tree()
        self.names: dict[str, str] = {}  # the node of each anchor

    def drawing(self) -> Drawing:
        cd = self.cd
        for source in cd.sources:
            self.names[source.anchor] = self._source(source)
            for attribute in getattr(source, "attributes", ()):
                if attribute.anchor is not None:
                    self.names[attribute.anchor] = self.names[source.anchor]
        for timer in (s for s in cd.sources if isinstance(s, TimeEvent)):
            self._connect([timer.trigger], timer.anchor)
        for computation in cd.computations:
            label = f"{computation.anchor} = {expression_text(computation.value)}"
            self._add(computation.anchor, self.tree.add("operator", label), [computation.value])
        for predicate in cd.predicates:
            node = self.tree.add("condition", f"{predicate.anchor}: {_condition(predicate)}")
            self._add(predicate.anchor, node, predicate.arguments, predicate.of)
        for expression in cd.expressions:
            node = self.tree.add("operator", f"{expression.anchor}: {expression_text(expression.logic)}")
            self._add(expression.anchor, node, [expression.logic])
        for event in cd.events:
            given = ", ".join(attribute.name for attribute in event.attributes)
            notes = ["" if event.access == "public" else event.access, f"with {given}" if given else ""]
            result = self.tree.add("result", event.message_class, notes)
            self.tree.connect(self.names[event.trigger], result)
            computed = {c.anchor for c in cd.computations}
            used = dict.fromkeys(name for attribute in event.attributes for name in self._anchors(attribute.value))
            for anchor in used:
                if anchor in computed:
                    self.tree.connect(self.names[anchor], result)
        return self.tree.drawing(cd.id, _caption(cd))

    def _source(self, source: AnySource) -> str:
        if isinstance(source, TimeEvent):
            value = _duration(number) if (number := _number(source.value)) is not None else expression_text(source.value)
            when = f"{value} after {source.trigger}" if source.relative else f"at {value}"
            return self.tree.add("timer", f"{source.anchor}: {when}")
        shape = "collection" if isinstance(source, Collection) else "event"
        return self.tree.add(shape, f"{source.anchor}: {source.message_class}", self._notes(source))  # type: ignore[arg-type]

    def _notes(self, source: Source) -> Iterable[str]:
        if (within := self.cd.within_of(source)) is not None:
            yield f"within {_duration(within)}"
        for attribute in source.attributes:
            yield from (_filter(attribute.name, some) for some in attribute.filters)
            if attribute.lookup is not None:
                yield f"{attribute.name} looked up"

    def _add(self, anchor: str, node: str, reads: Iterable[Expr], of: str | None = None) -> None:
        self.names[anchor] = node
        used = [name for tree in reads for name in self._anchors(tree)]
        self._connect([*used, *([of] if of is not None and of in self.names else [])], anchor)

    def _connect(self, anchors: Iterable[str], target: str) -> None:
        nodes = dict.fromkeys(self.names[anchor] for anchor in anchors if anchor in self.names)
        for node in nodes:
            if node != self.names[target]:
                self.tree.connect(node, self.names[target])

    def _anchors(self, tree: Expr) -> Iterable[str]:
        """The anchors that a value or condition refers to: a name, or what stands before its dot."""
        for node in walk(tree):
            if isinstance(node, Alias):
                yield node.name or ""
            elif isinstance(node, Reference):
                name = f"{node.alias}.{node.name}" if node.alias else node.name
                parts = name.split(".")
                yield from (".".join(parts[:n]) for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in self.names)


def _number(value: Expr) -> float | None:
    """Of a literal length of time, which is in milliseconds."""
    return value.value if isinstance(value, Literal) and is_number(value.value) else None


def _condition(predicate: Predicate) -> str:
    texts = [expression_text(argument) for argument in predicate.arguments]
    if predicate.name is None:
        return texts[0]
    if predicate.name in COMPARISONS and len(texts) == 2:
        return f"{texts[0]} {COMPARISONS[predicate.name]} {texts[1]}"
    return f"{predicate.name}({', '.join(texts)})" if texts else predicate.name


def _filter(name: str, given: Filter) -> str:
    texts = [expression_text(value) for value in given.values]
    if not given.operators:
        return texts[0]
    return " and ".join(f"{name} {COMPARISONS.get(operator, operator)} {', '.join(texts)}" for operator in given.operators)


def _caption(cd: Description) -> str:
    words = [f"cd {cd.id}"]
    if cd.within is not None:
        words.append(f"within {_duration(cd.within)}")
    if cd.disjoint:
        words.append("disjoint")
    return ", ".join([*words, *map(_preference, cd.preferences)])


def _preference(preference: Preference) -> str:
    fields = {"self": preference.self_, "previous": preference.previous, "other": preference.other, "better": preference.better}
    return "prefers " + " ".join(f"{word} {anchor}" for word, anchor in fields.items() if anchor is not None)


def _duration(milliseconds: float) -> str:
    return duration_text(round(milliseconds * MILLISECOND))
