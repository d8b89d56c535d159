"""A definition as it runs: its nodes, and the detections that it makes of their occurrences (5.7)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from coincide.detection.algebra.construction.build import Builder
from coincide.detection.algebra.nodes.base import Node
from coincide.detection.algebra.occurrence import SOURCE, Occurrence, attribute_key
from coincide.detection.algebra.scope import Environment, environment, value_of
from coincide.detection.keys import Key, key_reader, key_value
from coincide.expr.tree import Expr
from coincide.lang.ecco.aliases import Aliases
from coincide.lang.ecco.conditions import resolved
from coincide.lang.ecco.lasting import Names
from coincide.lang.ecco.link import Linked, reads_any, referred
from coincide.lang.ecco.print import definition_text, linked_text
from coincide.lang.shared.digest import digest_of
from coincide.model.event import Value, source_of

if TYPE_CHECKING:
    from coincide.detection.algebra.shape.shapes import Operators, Window

CERTAINTY = "certainty"

OWN = frozenset({"type", "id", "time"})
"""Keys that a detection does not carry: it has such fields of its own."""


@dataclass(frozen=True, eq=False)
class Program:
    """One definition. `order` is its detector's, None if another plan gives its detections out."""

    linked: Linked
    names: Names
    order: int | None = None

    @property
    def name(self) -> str:
        return self.linked.name

    @cached_property
    def digest(self) -> str:
        return digest_of("ecco", linked_text(self.linked))

    @cached_property
    def _built(self) -> tuple[Node, tuple[Node, ...]]:
        builder = Builder(self.linked.definition, self.linked.setting, self.names, not self.linked.late)
        root = builder.build()
        return root, tuple(builder.nodes)

    @property
    def root(self) -> Node:
        return self._built[0]

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self._built[1]

    @cached_property
    def shape(self) -> Operators | Window:
        """As the kernel sees it. Raises Unsupported if it has none."""
        from coincide.detection.algebra.shape.coverage import shape_of

        return shape_of(self)

    def take_over(self, other: Program) -> None:
        """What has been built of the same definition is not built again."""
        vars(self).update((name, vars(other)[name]) for name in ("_built", "shape") if name in vars(other))

    # What it reads.

    @cached_property
    def types(self) -> frozenset[str]:
        return referred(self.linked.definition.body)

    @cached_property
    def made_types(self) -> frozenset[str]:
        """Names among them that definitions make, of this language or another."""
        return self.names.made(self.types)

    @cached_property
    def reads_any(self) -> bool:
        return reads_any(self.linked.definition.body)

    @property
    def keys(self) -> tuple[str, ...]:
        return self.linked.definition.keys

    @cached_property
    def key_of(self) -> Callable[[Occurrence], Key | None]:
        reader: Callable[..., Key | None] = key_reader(self.keys)
        return reader

    # What it makes.

    @cached_property
    def tells_source(self) -> bool:
        """Does it say what the source of its detections is? Otherwise only other definitions see what their events agree on."""
        return SOURCE in (*self.keys, *(name for name, _ in self.given or ()))

    @cached_property
    def given(self) -> tuple[tuple[str, Expr], ...] | None:
        """The `give` list; None: there is none."""
        items = self.linked.definition.give
        if items is None:
            return None
        aliases = Aliases(self.linked.definition.body).bound(self.linked.definition.body)
        return tuple((item.name, resolved(item.value, aliases)) for item in items)

    @cached_property
    def _given(self) -> tuple[tuple[str, Callable[[Environment], Value]], ...] | None:
        return None if self.given is None else tuple((name, value_of(tree)) for name, tree in self.given)

    def attributes(self, occurrence: Occurrence, key: Key) -> dict[str, Value]:
        """The `give` list, or all attributes of the composite by name; the key always."""
        if self._given is None:
            values = dict(sorted(occurrence.attributes.items()))
        else:
            names = environment(occurrence)
            values = {name: value(names) for name, value in self._given}
        values.update((name, key_value(part)) for name, part in zip(self.keys, key, strict=True) if name not in OWN)
        if occurrence.maybe:
            values[CERTAINTY] = "maybe"
        return {name: value for name, value in values.items() if value is not None}

    def detections(self, found: Mapping[Key, Sequence[Occurrence]], serial: int) -> list[Occurrence]:
        """New detections in ascending order, ties by key, numbered from `serial`; of copies that differ in aliases only, one."""
        keys = [key for key, occurrences in found.items() if occurrences]
        if len(keys) > 1:
            keys.sort(key=key_rank)
        made = [(o, self.attributes(o, key)) for key in keys for o in found[key]]
        if len(made) > 1:
            made.sort(key=lambda pair: pair[0].order)
            distinct: dict[tuple[object, ...], tuple[Occurrence, dict[str, Value]]] = {}
            for o, values in made:
                distinct.setdefault((o.lo, o.hi, o.origin, attribute_key(values)), (o, values))
            made = list(distinct.values())
        return [self._named(o, values, serial + n) for n, (o, values) in enumerate(made)]

    def _named(self, o: Occurrence, attributes: dict[str, Value], number: int) -> Occurrence:
        """A name does not change the meaning (section 3): stamp, kind, life and length stay; leaf, carrier and source are
        the detection's own; `maybe` is an attribute only."""
        return Occurrence(
            o.lo,
            o.hi,
            o.kind,
            o.latest_start,
            o.earliest_end,
            o.origin,
            detections=frozenset({(self.name, number)}),
            attributes={name: value for name, value in attributes.items() if name != SOURCE},
            expires=o.expires,
            type=self.name,
            source=source_of(attributes[SOURCE]) if SOURCE in attributes else o.source,
            space=o.space,
            incomplete=o.incomplete,
        )


def key_rank(key: Key) -> str:
    """Keys have an order that no way of running changes; -0.0 is 0.0, whichever came first."""
    return repr([part + 0.0 if isinstance(part, float) else part for part in key])


def former_digest(linked: Linked) -> str:
    """By which older snapshots know it."""
    settings = [repr((item.setting, definition_text(item.definition))) for item in linked.together]
    text = "\n".join(["ecco", *settings, *sorted(linked.foreign)])
    return hashlib.sha256(text.encode()).hexdigest()
