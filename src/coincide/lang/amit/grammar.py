"""The attributes of Amit's elements and their values (sections 2.1 and 2.2): one list for XML, YAML and its schema.
Operators and operands have theirs in operators.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

TYPES = ("string", "number", "boolean")
FLAGS = ("true", "false")
TERMINATIONS = ("terminate", "discard")
QUANTIFIERS = ("first", "last", "each")

SHAPES: dict[str, tuple[str, ...]] = {
    "event": ("name",),
    "eventAttribute": ("name", "type"),
    "key": ("name", "type"),
    "eventKey": ("event", "attribute"),
    "keyBy": ("name", "attribute"),
    "lifespan": ("name",),
    "eventInitiator": ("event", "as", "correlate", "where"),
    "eventTerminator": ("event", "as", "quantifier", "terminationType", "where"),
    "expirationInterval": ("timeInterval", "terminationType"),
    "situation": ("name", "lifespan", "internal"),
    "situationAttribute": ("name", "type", "expression"),
    "template": ("name", "parameters"),
}
"""Attributes of each element."""

CHILDREN: dict[str, tuple[str, ...]] = {
    "event": ("eventAttribute",),
    "key": ("eventKey",),
    "lifespan": ("initiator", "terminator", "keyBy"),
    "initiator": ("startup", "eventInitiator"),
    "terminator": ("eventTerminator", "expirationInterval", "noTerminator"),
}
"""Elements inside an element; those of situations, templates and operators are apart."""

SYNONYMS: dict[str, dict[str, str]] = {
    "eventInitiator": {"alias": "as", "threshold": "where", "correlation": "correlate"},
    "eventTerminator": {"alias": "as", "threshold": "where", "type": "terminationType"},
    "expirationInterval": {"type": "terminationType"},
}
"""The paper's other words for them."""

CHOICES: Mapping[str, Sequence[str]] = {
    "type": TYPES,
    "correlate": ("add", "ignore"),
    "quantifier": QUANTIFIERS,
    "quantifierType": ("relative", "absolute"),
    "terminationType": TERMINATIONS,
    "repeatMode": ("once", "always"),
    "internal": FLAGS,
    "counted": FLAGS,
}
"""Attributes that have one of a few values, wherever they stand; `after` and the modes of operators are apart."""

AFTER_CORRELATES = ("add", "ignore", "replace")
