"""The description of the service in OpenAPI's terms, and a page that shows it."""

from __future__ import annotations

from functools import cache
from html import escape
from typing import Any

from coincide import __version__

Json = dict[str, Any]

TEXT: Json = {"type": "string"}
NAMES: Json = {"type": "array", "items": TEXT}


def _object(required: str, **properties: Json) -> Json:
    return {"type": "object", "required": required.split(), "properties": properties}


def _reference(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(schema: Json) -> Json:
    return {"application/json": {"schema": schema}}


def _answer(meaning: str, content: Json | None = None) -> Json:
    return {"description": meaning, **({} if content is None else {"content": content})}


def _refusals(*statuses: int) -> Json:
    return {str(status): _answer(REFUSALS[status], _json(_reference("Error"))) for status in (*statuses, *ANYWHERE)}


REFUSALS = {
    400: "It is not what it should be.",
    401: "A token is needed.",
    403: "Other sites may not ask.",
    404: "There is no such thing.",
    408: "The body came too slowly.",
    410: "So far back nothing is kept.",
    413: "The body is too long.",
    415: "It is of another content type.",
    422: "It can be read, but not be done.",
    429: "Too many requests.",
    503: "Not now: try again.",
}
ANYWHERE = (401, 403, 429)

EVENT: Json = {
    "type": "object",
    "required": ["type", "time"],
    "properties": {
        "type": {"type": "string", "pattern": r"^[A-Za-z_][A-Za-z0-9_.\-]*$", "minLength": 1},
        "time": {
            "oneOf": [{"type": "integer", "minimum": 0, "maximum": 4_000_000_000_000}, {"type": "string", "format": "date-time"}]
        },
        "id": TEXT,
        "source": TEXT,
    },
    "additionalProperties": {"oneOf": [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"type": "null"}]},
    "description": "Times are milliseconds since 1970, ISO-8601, or two of these. All other fields are attributes.",
}
DIAGNOSTIC = _object(
    "severity message", severity=TEXT, message=TEXT, file=TEXT, line={"type": "integer"}, column={"type": "integer"}, hint=TEXT
)
RULE = _object(
    "name kind language makes enabled digest",
    name=TEXT,
    kind=TEXT,
    language=TEXT,
    file={"type": ["string", "null"]},
    line={"type": ["integer", "null"]},
    makes=NAMES,
    enabled={"type": "boolean"},
    digest=TEXT,
)
SCHEMAS = {
    "Event": EVENT,
    "Accepted": _object("accepted", accepted={"type": "integer"}),
    "Error": _object(
        "error",
        error=TEXT,
        diagnostics={"type": "array", "items": _reference("Diagnostic")},
        rejected={"type": "array", "items": _object("record reason", record={"type": "integer"}, reason=TEXT)},
    ),
    "Diagnostic": DIAGNOSTIC,
    "Rule": RULE,
    "Rules": _object("rules files", rules={"type": "array", "items": _reference("Rule")}, files=NAMES),
    "Checked": _object("valid diagnostics", valid={"type": "boolean"}, diagnostics={"type": "array", "items": DIAGNOSTIC}),
    "File": _object("file text", file=TEXT, text=TEXT),
    "Detection": _object("id rule detection", id=TEXT, rule=TEXT, detection={"type": "object"}),
    "Detections": _object(
        "detections next",
        detections={"type": "array", "items": _reference("Detection")},
        next={"type": ["string", "null"]},
    ),
    "Status": _object("status", status=TEXT),
}


def _parameter(name: str, meaning: str, schema: Json = TEXT, place: str = "query") -> Json:
    return {"name": name, "in": place, "description": meaning, "required": place == "path", "schema": schema}


FILTERS = [
    _parameter("type", "Only detections of this type; may be repeated.", NAMES),
    _parameter("rule", "Only detections of this rule; may be repeated.", NAMES),
    _parameter(
        "attribute", "Only where an attribute has a value, as NAME=VALUE; may be repeated.",
        {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+=.*$"}},
    ),
    _parameter("after", "The id of a detection: those after it. `start`: all that are kept."),
]  # fmt: skip
RULE_NAME = [_parameter("name", "The rule's name.", {"type": "string", "minLength": 1}, "path")]
FILE_NAME = [_parameter("file", "The file, as the list of rules names it.", {"type": "string", "minLength": 1}, "path")]
CHANGED = {"200": _answer("The rules as they are now.", _json(_reference("Rules")))}
SHOWN = {"text/plain": {"schema": TEXT}}


EVENTS: Json = {"oneOf": [_reference("Event"), {"type": "array", "items": _reference("Event")}]}
PATHS: Json = {
    "/events": {
        "post": {
            "summary": "Publish events: a record, an array of records, or one a line. All are accepted, or none.",
            "requestBody": {"required": True, "content": {**_json(EVENTS), "application/x-ndjson": {"schema": TEXT}}},
            "responses": {
                "202": _answer("They are kept, and will be dealt with.", _json(_reference("Accepted"))),
                **_refusals(400, 408, 413, 415, 422, 503),
            },
        }
    },
    "/detections": {
        "get": {
            "summary": "Detections that were made, oldest first.",
            "parameters": [
                *FILTERS,
                _parameter("limit", "At most so many.", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}),
            ],
            "responses": {
                "200": _answer("Those that are kept.", _json(_reference("Detections"))),
                **_refusals(400, 410),
            },
        }
    },
    "/detections/stream": {
        "get": {
            "summary": "Detections as they are made: server-sent events. A browser goes on where it was by itself.",
            "parameters": FILTERS,
            "responses": {
                "200": _answer("A stream without end.", {"text/event-stream": {"schema": TEXT}}),
                **_refusals(400, 410),
            },
        }
    },
    "/rules": {
        "get": {
            "summary": "The rules, and the files that hold them.",
            "responses": {"200": _answer("All of them.", _json(_reference("Rules"))), **_refusals()},
        }
    },
    "/rules/validate": {
        "post": {
            "summary": "Would these rules be accepted in the place of that file?",
            "requestBody": {"required": True, "content": _json(_reference("File"))},
            "responses": {
                "200": _answer("What there is to say of them.", _json(_reference("Checked"))),
                **_refusals(400, 408, 413, 415),
            },
        }
    },
    "/rules/{name}/enable": {
        "post": {
            "summary": "Let a rule make detections again. It starts afresh.",
            "parameters": RULE_NAME,
            "responses": {**CHANGED, **_refusals(404, 422)},
        }
    },
    "/rules/{name}/disable": {
        "post": {
            "summary": "Let a rule make no detections. The others go on as if nothing had been.",
            "parameters": RULE_NAME,
            "responses": {**CHANGED, **_refusals(404, 422)},
        }
    },
    "/rule-files/{file}": {
        "get": {
            "summary": "The text of a file of rules.",
            "parameters": FILE_NAME,
            "responses": {"200": _answer("Its text.", SHOWN), **_refusals(404)},
        },
        "put": {
            "summary": "Replace a file of rules, or add one. Rules whose text is unchanged keep their state.",
            "parameters": FILE_NAME,
            "requestBody": {"required": True, "content": SHOWN},
            "responses": {**CHANGED, **_refusals(400, 408, 413, 415, 422)},
        },
    },
    "/metrics": {
        "get": {"summary": "Counts, for Prometheus.", "responses": {"200": _answer("Its format.", SHOWN), **_refusals()}}
    },
    **{
        path: {
            "get": {
                "summary": summary,
                "security": [],
                "responses": {
                    "200": _answer("Yes.", _json(_reference("Status"))),
                    "503": _answer("No.", _json(_reference("Status"))),
                },
            }
        }
        for path, summary in (("/health", "Is the process alive?"), ("/ready", "Are events taken?"))
    },
}


@cache
def described() -> Json:
    return {
        "openapi": "3.1.0",
        "info": {"title": "coincide", "version": __version__, "description": "Events in, situations out."},
        "paths": PATHS,
        "components": {"schemas": SCHEMAS, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}, {}],
    }


STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}"
    "code{background:#f2f2f2;padding:.1em .3em}h2{margin:1.5em 0 .2em;font-size:1.05em}"
    "td{padding:.1em 1em .1em 0;vertical-align:top}"
)


@cache
def page() -> str:
    parts = [_operation(path, method, what) for path, methods in described()["paths"].items() for method, what in methods.items()]
    head = f"<!doctype html><html lang=en><meta charset=utf-8><title>coincide</title><style>{STYLE}</style>"
    text = f"<h1>coincide {escape(__version__)}</h1><p>The same for programs: <a href=openapi.json>openapi.json</a></p>"
    return f"{head}<body>{text}{''.join(parts)}"


def _operation(path: str, method: str, what: Json) -> str:
    rows = [(p["name"], p["description"]) for p in what.get("parameters", ())]
    rows += [("body", ", ".join(what["requestBody"]["content"]))] if "requestBody" in what else []
    rows += [(status, response["description"]) for status, response in what["responses"].items()]
    table = "".join(f"<tr><td><code>{escape(name)}</code><td>{escape(meaning)}" for name, meaning in rows)
    return f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(what['summary'])}</p><table>{table}</table>"
