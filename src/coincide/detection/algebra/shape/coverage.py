"""What the kernel tier can do, and why not, where it cannot."""

from __future__ import annotations

from collections.abc import Iterator

from coincide.detection.algebra.nodes.aggregate import WindowNode
from coincide.detection.algebra.nodes.base import Binding, Disjunction, Node, Reference
from coincide.detection.algebra.nodes.selection import Threshold
from coincide.detection.algebra.program import Program
from coincide.detection.algebra.shape.keys import Unsupported
from coincide.detection.algebra.shape.operators import Reader
from coincide.detection.algebra.shape.shapes import Leaf, Operators, Window, check_tree, leaf_of
from coincide.expr.tree import Alias
from coincide.expr.tree import Reference as FieldReference
from coincide.lang.ecco.definition import Iter, Null, Valid
from coincide.lang.ecco.link import Linked, Setting
from coincide.syntax import walk

BEYOND = (Iter, Null, Valid)
"""Expressions that have no kernel wherever they stand."""


def reasons(program: Program) -> tuple[str, ...]:
    """Why the definition has no kernel tier; empty: it has one."""
    try:
        program.shape  # noqa: B018
    except Unsupported as found:
        return (str(found),)
    return ()


def may_have_kernel(linked: Linked) -> bool:
    """Is it worth while to look closer? There may be many definitions."""
    bodies = (item.definition.body for item in linked.together)
    return not linked.definition.hidden and not any(isinstance(node, BEYOND) for body in bodies for node in walk(body))


def shape_of(program: Program) -> Operators | Window:
    for reason in _about_setting(program, program.linked.setting):
        raise Unsupported(reason)
    found = _window(program.root, program.made_types) or Reader(program).operators()
    _check_given(program, found)
    return found


def _about_setting(program: Program, setting: Setting) -> Iterator[str]:
    if setting.stamps or setting.duplicates:
        yield "is in a file with 'stamp' or 'duplicates' statements"
    if setting.options.semantics == "point":
        yield "is in a file with 'option semantics point'"
    if setting.options.maybe == "keep" and setting.options.skew:
        yield "is in a file with 'option maybe keep'"
    if program.reads_any:
        yield "uses any or NULL"


def _check_given(program: Program, found: Operators | Window) -> None:
    """What a detection carries must follow from its events alone."""
    named = {alias for leaf in found.leaves if not leaf.optional for alias in leaf.aliases}
    for _, tree in program.given or ():
        check_tree(tree)
        for node in walk(tree):
            alias = node.alias if isinstance(node, FieldReference) else node.name if isinstance(node, Alias) else None
            if alias is not None and alias not in named:
                raise Unsupported(f"gives something of '{alias}', which is not a single event")


# Windows.


def _window(root: Node, made: frozenset[str]) -> Window | None:
    thresholds: list[Threshold] = []
    node = root
    while isinstance(node, Threshold):
        thresholds.append(node)
        node = node.children[0]
    if not isinstance(node, WindowNode):
        return None
    if (does := node.aggregator.does) is not None and does.without_kernel:
        raise Unsupported(f"uses {node.aggregator.function}, {does.without_kernel}")
    for one in thresholds:
        if not isinstance(one.tree, FieldReference) or one.tree.name != node.aggregator.attribute:
            raise Unsupported(f"uses {'LESS' if one.less else 'MORE'} with an argument")
    if any(test.whole for one in (node, *thresholds) for test in one.tests):
        raise Unsupported("compares the whole by its alias")
    for tree in [test.tree for one in (node, *thresholds) for test in one.tests] + [t for t in [node.aggregator.tree] if t]:
        check_tree(tree)
    leaves = list(_alternatives(node.children[0], made))
    if len({leaf.type for leaf in leaves}) < len(leaves):
        raise Unsupported("has alternatives that can be one event")
    if len(leaves) > 1 and any(leaf.made for leaf in leaves):
        raise Unsupported("has a window over alternatives that are detections")
    return Window(node, tuple(leaves), tuple(reversed(thresholds)))


def _alternatives(node: Node, made: frozenset[str]) -> Iterator[Leaf]:
    """The references that a window is over. Aliases end there."""
    if isinstance(node, Binding):
        yield from _alternatives(node.children[0], made)
    elif isinstance(node, Disjunction) and not node.tests and not node.reduces:
        for child in node.children:
            yield from _alternatives(child, made)
    elif isinstance(node, Reference):
        yield leaf_of(node, (), True, made)
    else:
        raise Unsupported("has a window over something composed")
