"""HTML that is made of parts: whatever is not markup already is escaped, so that no text of an event can be any."""

from __future__ import annotations

from html import escape
from urllib.parse import urlsplit

LONGEST = 4_000
"""Characters of one value that are shown."""
VOID = frozenset({"br", "input", "meta"})


class Markup(str):
    """Text that is HTML."""

    __slots__ = ()


Part = str | Markup | None


def element(name: str, /, *parts: Part, **attributes: str | int | None) -> Markup:
    """`class_` is `class`, `data_level` is `data-level`; an attribute that is None is left out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(visible(str(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    start = f"<{name}{given}>"
    return Markup(start if name in VOID else f"{start}{joined(*parts)}</{name}>")


def joined(*parts: Part) -> Markup:
    return Markup("".join(part if isinstance(part, Markup) else escape(visible(part)) for part in parts if part is not None))


def visible(text: str) -> str:
    """What nobody would see, or what changes the order of what is seen, is spelt out; very long texts are cut."""
    cut = text[:LONGEST]
    shown = cut if cut.isprintable() else "".join(c if c.isprintable() or c in "\n\t" else f"\\u{{{ord(c):x}}}" for c in cut)
    return shown if len(text) <= LONGEST else f"{shown}… ({len(text) - LONGEST:,} more characters)"


def link(address: str, text: str | None = None) -> Part:
    """To a page of the web; what is not an address of one is text."""
    try:
        parts = urlsplit(address)
        is_web = parts.scheme in ("http", "https") and bool(parts.netloc)
    except ValueError:
        is_web = False
    if not is_web:
        return text or address
    return element("a", text or address, href=address, target="_blank", rel="noopener noreferrer")
