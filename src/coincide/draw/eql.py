"""Queries of EQL, drawn: what must come, from left to right, what must be missing at the place where it must not come, and what
ends the search."""

from __future__ import annotations

from coincide.draw.graph import Arrow, Drawing, Node, wrapped
from coincide.expr.tree import Literal
from coincide.lang.eql.definition import FILTER, SEQUENCE, Item, Query
from coincide.lang.eql.print import category_text, condition_text, duration_text, keys_text


def query_drawing(query: Query) -> Drawing:
    drawn = _sequence(query) if query.kind == SEQUENCE else _together(query)
    pipes = tuple(f"{pipe.name} {pipe.count}" for pipe in query.pipes)
    nodes, arrows = drawn
    return Drawing(query.name, _caption(query), (*nodes, Node("result", "result", query.name, pipes)), tuple(arrows))


def _caption(query: Query) -> str:
    if query.kind == FILTER:
        return "each event by itself"
    maxspan = "" if query.maxspan is None else f" within {duration_text(query.maxspan)}"
    return f"{query.kind}{keys_text(query.keys)}{maxspan}"


def _sequence(query: Query) -> tuple[list[Node], list[Arrow]]:
    """What is missing between two events stands on the arrow between them."""
    nodes, arrows = [Node("start", "start")], []
    source, missing = "start", list[str]()
    for number, item in enumerate(query.items):
        if item.missing:
            missing += _words(item)
            continue
        nodes.append(_event(f"e{number}", item))
        arrows.append(Arrow(source, f"e{number}", "begin" if source == "start" else "strong", tuple(missing)))
        source, missing = f"e{number}", []
    if missing:
        nodes.append(Node("timer", "timer", duration_text(query.maxspan or 0)))
        arrows.append(Arrow(source, "timer", "strong", tuple(missing)))
        source = "timer"
    arrows.append(Arrow(source, "result", "strong"))
    return _with_until(query, nodes, arrows)


def _together(query: Query) -> tuple[list[Node], list[Arrow]]:
    """In any order."""
    nodes = [_event(f"e{number}", item) for number, item in enumerate(query.items)]
    meet = "result" if query.kind == FILTER else "all"
    arrows = [Arrow(node.name, meet, "strong") for node in nodes]
    if query.kind != FILTER:
        nodes.append(Node("all", "operator", "all of them, in any order"))
        arrows.append(Arrow("all", "result", "strong"))
    return _with_until(query, nodes, arrows)


def _with_until(query: Query, nodes: list[Node], arrows: list[Arrow]) -> tuple[list[Node], list[Arrow]]:
    if query.until is not None:
        first = next(arrow.target for arrow in arrows if arrow.target != "start")
        nodes.append(Node("until", "condition", f"until {category_text(query.until.filter.category)}", _notes(query.until)))
        arrows.append(Arrow("until", first, "weak", ("drops what is pending",)))
    return nodes, arrows


def _event(name: str, item: Item) -> Node:
    runs = (f"{item.runs} times",) if item.runs > 1 else ()
    return Node(name, "event", category_text(item.filter.category), (*_notes(item), *runs))


def _notes(item: Item) -> tuple[str, ...]:
    condition = item.filter.condition
    where = () if condition == Literal(True) else wrapped(condition_text(condition))
    return (*where, *((keys_text(item.keys).strip(),) if item.keys else ()))


def _words(item: Item) -> list[str]:
    return [f"no {category_text(item.filter.category)}", *_notes(item)]
