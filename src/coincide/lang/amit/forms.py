"""Definitions in any of the forms that Amit's rules have. What a form needs is imported with it."""

from __future__ import annotations

from coincide.lang.amit.definition import File
from coincide.lang.amit.print import print_file as print_xml
from coincide.lang.amit.templates import expand


def printed(file: File, form: str) -> str:
    """As `xml`, as `yaml`, or as `python`, where templates are written out."""
    if form == "yaml":
        from coincide.lang.amit.print_yaml import print_file as print_yaml

        return print_yaml(file)
    if form == "python":
        from coincide.lang.amit.print_python import print_definitions

        return print_definitions(expand([file])[0])
    return print_xml(file)
