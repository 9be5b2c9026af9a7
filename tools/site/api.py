"""The reference of the API, from its OpenAPI document."""

METHODS = ("get", "post", "put", "patch", "delete")


def name_of(schema):
    """A type in words, with links to the types of the document."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](api-types.md#{name.lower()})"
    for key in ("oneOf", "anyOf", "allOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(name_of(part) for part in schema[key]))
    if "const" in schema or "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {name_of(schema.get('items') or {})}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"map of {name_of(schema['additionalProperties'])}"
    return " or ".join(kind) if isinstance(kind, list) else kind


def cell(text):
    """Text for one cell of a table."""
    return " ".join((text or "").split()).replace("|", "\\|")


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(row) + " |" for row in rows), ""]


def endpoints(document):
    """The page of endpoints."""
    lines = ["# API endpoints", "", "From the OpenAPI document, which the manager serves at `/v1/openapi.json`.", ""]
    for path, item in sorted(document["paths"].items()):
        for method in METHODS:
            if method in item:
                lines += endpoint(f"{method.upper()} {path}", item[method])
    return "\n".join(lines)


def endpoint(title, operation):
    lines = [f"## {title}", "", operation.get("summary", ""), ""]
    parameters = [
        [f"`{parameter['name']}`", parameter["in"], name_of(parameter.get("schema", {})), cell(parameter.get("description"))]
        for parameter in operation.get("parameters", [])
    ]
    if parameters:
        lines += table(["parameter", "in", "type", "meaning"], parameters)
    for content in operation.get("requestBody", {}).get("content", {}).values():
        lines += [f"Body: {name_of(content.get('schema', {}))}", ""]
    for status, answer in operation["responses"].items():
        for kind, content in answer.get("content", {}).items():
            if status != "default":
                lines += [f"Answer {status}: {name_of(content.get('schema', {}))} ({kind})", ""]
    return lines


def types(document):
    """The page of types."""
    lines = ["# API types", ""]
    for name, schema in sorted(document["components"]["schemas"].items()):
        lines += [f"## {name}", "", cell(schema.get("description")), ""]
        properties = schema.get("properties")
        if not properties:
            lines += [name_of(schema), ""]
            continue
        required = schema.get("required", [])
        rows = [
            [f"`{field}`", name_of(of), "" if field in required else "optional", cell(of.get("description"))] for field, of in properties.items()
        ]
        lines += table(["field", "type", "", "meaning"], rows)
    return "\n".join(lines)
