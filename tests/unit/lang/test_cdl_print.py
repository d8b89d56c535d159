"""Printing and parsing again gives equal definitions."""

from __future__ import annotations

from pathlib import Path

import pytest

from coincide.lang.cdl.parse import parse
from coincide.lang.cdl.print import print_file
from coincide.source import SourceText
from coincide.testing.cases import Case, find_cases

CASES = Path(__file__).parents[2] / "conformance" / "cases"


@pytest.mark.parametrize("case", find_cases(CASES / "cdl"), ids=lambda case: case.name)
def test_cases_read_back(case: Case) -> None:
    (path,) = case.rules
    file = parse(SourceText(str(path), path.read_text(encoding="utf-8")))
    printed = print_file(file)
    assert parse(SourceText(str(path), printed)) == file
    assert print_file(parse(SourceText(str(path), printed))) == printed


ODD = """<cd id="a&quot;b&#10;&lt;" version="1.02" within="1h 30min" disjoint="true">
  <sources>
    <source class="*" access="w &amp; e" duplicates="replay" within="5s">
      <attribute name="t" type="string" anchor="-odd-" optional="true">
        <filter operators="notequal"><value> two
lines </value></filter>
        <filter><ref anchor="n"/></filter>
        <filter>t in ('a', 'it''s') and t like '%&lt;' or t is not null</filter>
        <filter operators="in"><interval><value>a</value><value type="string">b</value></interval><set/></filter>
      </attribute>
      <attribute name="n" type="boolean"><filter>n</filter></attribute>
    </source>
    <collection class="g" anchor="G" reuse="true"><attribute name="x" type="double"/></collection>
    <time anchor="T" trigger="S1"><relative><add><value type="int">-5</value>
      <value type="time_t">1970-01-01T00:00:01Z</value><value type="double">1e30</value></add></relative></time>
  </sources>
  <computations>
    <computation type="string" anchor="C" overhead="3"><concat><ref anchor="-odd-"/><value>
</value><call method="lower"><ref anchor="S1.t"/></call></concat></computation>
    <computation type="double" anchor="D"><neg><ref anchor="S1.time"/></neg></computation>
    <computation type="double" anchor="E"><sum><mul><ref anchor="G.x"/><ref anchor="D"/></mul></sum></computation>
    <computation type="boolean" anchor="F">not (S1.n and (true or false)) or S1.t not in set('a', 'b')</computation>
  </computations>
  <predicates>
    <predicate name="EQUAL" anchor="P" selectivity="0.5">S1.t, C</predicate>
    <predicate name="preferGreater" anchor="Q"><ref anchor="E"/><ref anchor="E" of="other"/></predicate>
    <predicate name="complete" anchor="R" of="previous"/>
    <predicate anchor="-s">count(G) &gt;= 2 and node('load') &lt; 3</predicate>
  </predicates>
  <expressions>
    <expression anchor="X"><not><or><ref anchor="-s"/><and><ref anchor="P"/><ref anchor="-s"/></and></or></not></expression>
    <expression anchor="Y">Q or R</expression>
  </expressions>
  <events>
    <event class="e" access="gate" trigger="X"><attribute name="v" type="double">E / (2 - 1) - (3 - 4)</attribute></event>
  </events>
  <preferences><preference><better>Y</better></preference><preference/></preferences>
</cd>"""


def test_odd_names_and_texts_read_back() -> None:
    file = parse(SourceText("odd.cdl.xml", ODD))
    printed = print_file(file)
    assert parse(SourceText("odd.cdl.xml", printed)) == file
    value = file.descriptions[0].sources[0].attributes[0].filters[0].values[0]  # type: ignore[union-attr]
    assert value.value == " two\nlines "  # type: ignore[attr-defined]
