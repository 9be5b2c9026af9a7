"""The reference of events, from the OpenAPI document."""

from api import cell, name_of, table

HEAD = """# Events

From the OpenAPI document. New kinds and fields may be added. [API](../api.md) says how to follow events.
"""


def page(document):
    """The page: stored events by kind, and updates."""
    schemas = document["components"]["schemas"]
    lines = [HEAD, "## Stored events", ""]
    lines += ["The timeline of a job (`carma show JOB`, `events` in `GET /v1/jobs/{job}`), and of the machine.", ""]
    lines += ["Each has `at` (milliseconds since 1970), `kind`, `body` with the fields below, and `job`, unless it is an event of the machine.", ""]
    lines += table(["kind", "when", "fields of `body`"], [row(variant, "kind", schemas) for variant in schemas["JobEvent"]["oneOf"]])
    lines += ["## Updates", "", "What `GET /v1/events` sends. Each has `at`, `update` and these fields.", ""]
    lines += table(["update", "when", "fields"], [row(variant, "update", schemas) for variant in schemas["Update"]["oneOf"]])
    return "\n".join(lines)


def row(variant, tag, schemas):
    """The row of one kind."""
    properties = variant["properties"]
    (kind,) = properties[tag]["enum"]
    fields = properties.get("body", {}) if tag == "kind" else {"properties": {name: of for name, of in properties.items() if name != tag}}
    return [f"`{kind}`", cell(variant.get("description")), described(fields, schemas)]


def described(body, schemas):
    """The fields of a body: those of its type, if that is an object, or the name of the type."""
    target = schemas.get(body.get("$ref", "").rpartition("/")[2], body)
    properties = target.get("properties")
    if not properties:
        return name_of(body) if "$ref" in body or "oneOf" in body else ""
    return "; ".join(f"`{name}`: {name_of(of)}" for name, of in properties.items())
