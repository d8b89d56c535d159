"""Statements about the stream and the file: options, stamps, duplicates, spaces (sections 2 and 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from coincide.expr.tokens import Token
from coincide.lang.ecco.definition import DuplicatesRule, Options, Place, StampRule, ZoneFile
from coincide.lang.ecco.geojson import zones_of
from coincide.lang.ecco.reader import Reader
from coincide.source import SourceText


class StatementReader(Reader):
    """Takes statements one after another and keeps what they say."""

    def __init__(self, source: SourceText) -> None:
        super().__init__(source)
        self.options = Options()
        self.stamps: list[StampRule] = []
        self.duplicates: list[DuplicatesRule] = []
        self.spaces: list[tuple[str, Place]] = []
        self.zone_files: list[ZoneFile] = []

    def take_statement(self, word: Token) -> None:
        """What follows `option`, `stamp`, `duplicates` or `space`."""
        rules: dict[str, Callable[[], None]] = {
            "option": self._option,
            "stamp": self._stamp,
            "duplicates": self._duplicates,
            "space": self._space,
        }
        rules[word.text.lower()]()

    def _option(self) -> None:
        word = self.expect("skew", "maybe", "semantics", "policy", "offset").text.lower()
        if word == "skew":
            self.options = replace(self.options, skew=self._ratio())
        elif word == "maybe":
            self.options = replace(self.options, maybe=self.expect("reject", "keep").text.lower())
        elif word == "semantics":
            self.options = replace(self.options, semantics=self.expect("interval", "point").text.lower())
        elif word == "policy":
            self.options = replace(self.options, policies=(*self.options.policies, *self.policies()))
        else:
            self.options = replace(self.options, offset=self.duration(None))

    def _stamp(self) -> None:
        rule = StampRule(self._types())
        if self.tokens.take("hops"):
            rule = replace(rule, hops=self.name().text)
            if self.tokens.take("max"):
                rule = replace(rule, maximum=self.duration(then=("drift", "error", "delay")))
        if self.tokens.take("drift"):
            rule = replace(rule, drift=self._drift())
        if self.tokens.take("error"):
            rule = replace(rule, error=self.duration("zero", then=("delay",)))
        if self.tokens.take("delay"):
            rule = replace(rule, delay=self.duration("zero"))
        self.stamps.append(rule)

    def _ratio(self) -> float:
        """How much faster or slower a clock goes than another: with 1 or more, no time would be certain."""
        start = self.tokens.peek()
        number = self.number()
        ratio = number / 1e6 if self.tokens.take("ppm") else number
        if not 0 <= ratio < 1:
            raise self.tokens.fail(start, "a skew is a ratio from 0 to below 1, or ppm to below 1,000,000")
        return ratio

    def _drift(self) -> float:
        start = self.tokens.peek()
        number = self.number()
        self.expect("ppm")
        if not 0 <= number < 1e6:
            raise self.tokens.fail(start, "a drift is from 0 to below 1,000,000 ppm")
        return number

    def _duplicates(self) -> None:
        word = self.tokens.last
        assert word is not None
        keep = self.expect("first", "last").text.lower()
        rule = DuplicatesRule(keep, self._types(), span=self.span(word))
        if self.tokens.take("by"):
            rule = replace(rule, keys=self.names())
        if self.tokens.take("within"):
            rule = replace(rule, horizon=self.duration("zero"))
        self.duplicates.append(rule)

    def _types(self) -> tuple[str | None, ...]:
        return tuple(self.listed(lambda: None if self.tokens.take("any") else self.name("an event type").text))

    def _space(self) -> None:
        if self.tokens.peek().text.lower() == "from" and self.tokens.peek(1).kind == "text":
            self.tokens.next()
            return self._zone_file()
        name = self.name().text
        self.expect("=")
        self.spaces.append((name, self.place()))

    def _zone_file(self) -> None:
        """`space from 'city.geojson' by district`: zones, by a property of the file's features."""
        token = self.tokens.peek()
        file = ZoneFile(self.text())
        if self.tokens.take("by"):
            file = replace(file, property=self.text() if self.tokens.peek().kind == "text" else self.name("a property").text)
        for name, area in zones_of(file, self.span(token)).items():
            if name in self.zones:
                raise self.tokens.fail(token, f"'{file.path}' has a zone '{name}', which another file has, too")
            self.zones[name] = area
        self.zone_files.append(file)
