"""Data as YAML that people read: short collections on a line, no more quotes than needed."""

from __future__ import annotations

import yaml

WIDTH = 130


def dumped(data: object) -> str:
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH, default_flow_style=None)


class _Dumper(yaml.SafeDumper):
    """Nothing is written as an alias, however often it comes; lists stand deeper than what holds them."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def choose_scalar_style(self) -> str:
        """Texts with texts in them are not full of doubled quotes."""
        style: str = super().choose_scalar_style()
        return '"' if style == "'" and "'" in getattr(self.event, "value", "") else style


def plain(text: str) -> object:
    """Numbers and truth values need no quotes: they are read as the texts that they are."""
    if text in ("true", "false"):
        return text == "true"
    number = text.removeprefix("-")
    return int(text) if number.isascii() and number.isdigit() and str(int(text)) == text else text
