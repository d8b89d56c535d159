"""Rules of Sigma from their documents (sections 2 to 6, 8)."""

from __future__ import annotations

import re

from coincide.errors import Diagnostic, RuleError
from coincide.lang.shared.about import About
from coincide.lang.sigma.condition import condition_of
from coincide.lang.sigma.correlation import correlation_of
from coincide.lang.sigma.definition import Any_, DetectionRule, File, Head, Rule, Shown
from coincide.lang.sigma.mapping import Mapping, logsource_of, mapping_of
from coincide.lang.sigma.nodes import Map, check_keys, data_of, documents, fail, is_null, text_of, texts_of
from coincide.lang.sigma.selections import selection_of
from coincide.source import SourceText
from coincide.yaml import Entries, Items, Node, Scalar

NAME = re.compile(r"[^\W\d][\w.-]*")
KEPT = ("title", "name", "id", "level", "fields", "logsource", "detection", "correlation", "generate")
"""What of a document means something."""


def parse(source: SourceText) -> File:
    """RuleError at the first error; where the reading keeps going, what is wrong is told as the file's faults."""
    mapping = mapping_of(source.reading.mapping)
    rules: list[Rule] = []
    faults = [Diagnostic(message, source.line_span(line)) for line, message in source.reading.refused]
    keep_going = source.reading.keep_going
    try:
        nodes = documents(source)
    except RuleError as error:
        if not keep_going:
            raise
        return File((), error.diagnostics)
    for node in nodes:
        try:
            rules.append(_rule(node, mapping))
        except RuleError as error:
            if not keep_going:
                raise
            faults += error.diagnostics
    return File(tuple(rules), tuple(faults))


def _rule(node: Node, mapping: Mapping) -> Rule:
    check_keys(node)
    if not isinstance(node, Entries):
        fail("a rule must be a mapping", node.span)
    document = Map(node, "a rule")
    if "action" in document:
        fail("'action' is not supported", document.keys["action"].span)
    if "filter" in document:
        fail("filters are not supported", document.keys["filter"].span)
    if "correlation" not in document and "detection" not in document:
        fail("a rule needs a detection or a correlation", node.span)
    head = _head(node, document)
    if "correlation" in document:
        return correlation_of(head, document, mapping)
    return _detection_rule(head, document, mapping)


def _head(node: Entries, document: Map) -> Head:
    title, name, identity, level = (_text(document, key) for key in ("title", "name", "id", "level"))
    if title is None and name is None:
        fail("a rule needs a title or a name", node.span)
    if name is not None and NAME.fullmatch(name.text) is None:
        fail(f"'{name.text}' is not a name", name.span)
    entries = Entries(tuple(pair for pair in node.pairs if pair[0].text in KEPT), node.span)
    return Head(
        None if title is None else title.text,
        None if name is None else name.text,
        None if identity is None else identity.text,
        None if level is None else level.text,
        data_of(entries),
        _about(document),
        node.span,
        None if name is None else name.span,
        None if identity is None else identity.span,
    )


def _about(document: Map) -> About:
    """What means nothing to detection: nothing of it can be wrong."""
    texts = {name: " ".join(_texts(document, name)) for name in ("title", "name", "id", "level", "description", "author")}
    return About(
        texts["title"] or texts["name"],
        texts["id"] or None,
        texts["level"].lower() or None,
        texts["description"].strip(),
        _texts(document, "tags"),
        _texts(document, "references"),
        _texts(document, "falsepositives"),
        texts["author"],
    )


def _texts(document: Map, name: str) -> tuple[str, ...]:
    node = document.get(name)
    nodes = node.nodes if isinstance(node, Items) else (node,)
    return tuple(member.text for member in nodes if isinstance(member, Scalar) and not is_null(member))


def _text(document: Map, name: str) -> Scalar | None:
    node = document.get(name)
    if node is None or is_null(node):
        return None
    text_of(node)
    return node if isinstance(node, Scalar) and node.text else None


def _detection_rule(head: Head, document: Map, mapping: Mapping) -> DetectionRule:
    logsource = document.get("logsource")
    if logsource is None:
        fail("a detection rule needs a logsource", head.span)
    source = logsource_of(Map(logsource, "'logsource'"))
    if not source.values:
        fail("a logsource needs a category, a product or a service", logsource.span)
    parts, key = Map(document.values["detection"], "'detection'"), document.keys["detection"]
    if "timeframe" in parts:
        fail("'timeframe' is not supported: use a correlation rule", parts.keys["timeframe"].span)
    condition = parts.get("condition")
    if condition is None or is_null(condition):
        fail("a detection needs a condition", key.span)
    selections = {name.text: selection_of(node, mapping.meaning) for name, node in parts.items() if name.text != "condition"}
    if not selections:
        fail("a detection needs a search identifier", key.span)
    found = [condition_of(scalar.text, scalar.span, selections) for scalar in texts_of(condition)]
    if not found:
        fail("a detection needs a condition", key.span)
    fields = document.get("fields")
    shown = () if fields is None or is_null(fields) else tuple(Shown(s.text, mapping.attribute(s.text)) for s in texts_of(fields))
    return DetectionRule(head, mapping.looked(source, logsource.span), found[0] if len(found) == 1 else Any_(tuple(found)), shown)
