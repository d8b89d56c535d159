"""`%%coincide`: a cell of a notebook that is a rule, and a DataFrame for it to look at.

The text of the cell is never Python: of the notebook only the variables are read, and set, that the first line names."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import Any, NoReturn

from coincide.adapters.mapping import PER_SECOND, FieldMapping
from coincide.api import detect
from coincide.errors import CoincideError, Diagnostic, InputError, nearest
from coincide.rulebook import Rulebook, loads

ABOUT = "Run the rules of this cell over a table. Detections are a list of records; of a table of Spark, a DataFrame."


def register(shell: Any) -> None:
    """Adds the magic to IPython's shell."""
    from IPython.core.error import UsageError

    def coincide(line: str, cell: str) -> Any:
        try:
            return _run(_parser().parse_args(_words(line)), cell, shell.user_ns)
        except CoincideError as error:  # with its place and a caret; a trace would say nothing about the rule
            raise UsageError(f"\n{error}") from None

    coincide.__doc__ = _parser().format_help()
    shell.register_magic_function(coincide, "cell", "coincide")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InputError(Diagnostic(message, hint="%%coincide? tells what the first line may say"))


def _parser() -> _Parser:
    parser = _Parser("%%coincide", description=ABOUT, add_help=False)
    add = parser.add_argument
    add("frame", nargs="?", help="a pandas, Polars, Arrow or Spark table, or a list of records; without it, rules are drawn")
    add("--language", "-l", default="say", help="ecl, amit, opera, say, ecco, cdl, eql, sigma, or a file ending (say)")
    add("--out", "-o", metavar="NAME", help="the variable that takes the detections")
    add("--rules", "-r", metavar="NAME", help="the variable that takes the rulebook")
    add("--type", metavar="COLUMN", help="the column with the type of each event (type)")
    add("--every", metavar="TYPE", help="every row is an event of this type")
    add("--time", metavar="COLUMN", help="the column with the time of each event (time)")
    add("--unit", choices=tuple(PER_SECOND), help="of times that are numbers (ms)")
    add("--id", metavar="COLUMN", help="the column with the id of each event (id)")
    add("--until", metavar="TIME", help="let time go on after the last event: milliseconds, ISO-8601, or inf")
    add("--keys", action="store_true", help="give each detection its key, which is the same in every run")
    add("--why", action="store_true", help="keep what led to each detection: rows unfold, and `timeline` draws the run")
    add("--timeline", action="store_true", help="show the run on a line of time, below the detections")
    return parser


def _words(line: str) -> list[str]:
    """A name with spaces stands in quotes, as in a shell."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise InputError(f"the first line of the cell: {error}") from None


def _run(given: argparse.Namespace, cell: str, variables: dict[str, Any]) -> Any:
    book = loads(cell, given.language, "cell")
    for warning in book.warnings:
        print(warning.render(), file=sys.stderr)
    _keep(variables, given.rules, book)
    if given.frame is None:
        return book
    found = _detected(book, _table(variables, given.frame), given)
    _keep(variables, given.out, found)
    return _with_timeline(found, given.frame) if given.timeline else found


def _with_timeline(found: Any, title: str) -> Any:
    from IPython.display import display

    display(found)
    return found.timeline(title)


def _keep(variables: dict[str, Any], name: str | None, value: Any) -> None:
    if name is None:
        return
    if not name.isidentifier():
        raise InputError(f"'{name}' is not the name of a variable")
    variables[name] = value


def _table(variables: dict[str, Any], name: str) -> Any:
    if name in variables:
        return variables[name]
    known = [other for other in variables if not other.startswith("_")]
    raise InputError(Diagnostic(f"there is no variable '{name}'", hint=nearest(name, known)))


def _detected(book: Rulebook, table: Any, given: argparse.Namespace) -> Any:
    mapping = _mapping(given)
    if type(table).__module__.partition(".")[0] != "pyspark":
        why = given.why or given.timeline
        return detect(book, table, given.until, mapping=mapping, keys=given.keys, why=why)
    if given.why or given.timeline:
        raise InputError("what led to a detection is not kept on Spark: leave out --why and --timeline")
    from coincide.spark import detect as detect_on_spark

    return detect_on_spark(book, table, until=given.until, mapping=mapping, keys=given.keys)


def _mapping(given: argparse.Namespace) -> FieldMapping:
    named = {"type": given.type, "time": given.time, "id": given.id, "unit": given.unit, "constant_type": given.every}
    return FieldMapping(**{field: value for field, value in named.items() if value is not None})
