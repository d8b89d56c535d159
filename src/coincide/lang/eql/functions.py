"""The functions of EQL (section 4): how many arguments, and whether there is a form without case (`~`)."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network

from coincide.expr.functions import number_text
from coincide.model.numbers import number_of

Network = IPv4Network | IPv6Network


@dataclass(frozen=True)
class Signature:
    name: str
    least: int
    most: int | None
    any_case: bool = False

    def accepts(self, count: int) -> bool:
        return self.least <= count and (self.most is None or count <= self.most)


_ALL = (
    *(Signature(name, 2, 2) for name in ("add", "subtract", "multiply", "divide", "modulo")),
    Signature("between", 3, 4, True),
    Signature("cidrMatch", 2, None),
    Signature("concat", 1, None),
    *(Signature(name, 2, 2, True) for name in ("startsWith", "endsWith", "stringContains")),
    Signature("indexOf", 2, 3, True),
    Signature("length", 1, 1),
    Signature("number", 1, 2),
    Signature("string", 1, 1),
    Signature("substring", 2, 3),
)
SIGNATURES = {signature.name.lower(): signature for signature in _ALL}
"""By their names in lower case: they may be written in any."""


def network_of(text: str) -> Network | None:
    """A network as written, whatever the bits of the host in it; an address alone is a network of one."""
    _, slash, bits = text.partition("/")
    if slash and not (bits.isascii() and bits.isdecimal()):
        return None
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def spelled(value: object) -> str | None:
    """A text is itself; numbers and booleans as JSON writes them, whole numbers without a fraction."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return number_text(number_of(value) if isinstance(value, int) else value) if isinstance(value, (int, float)) else None
