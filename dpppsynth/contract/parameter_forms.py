"""Forms of public parameters: JSON Schemas of values by their names, which each statistic declares for its own.

A certificate whose parameters have another form, or other names, is refused before anything is made of them. Epsilon,
n, expected_n and the estimator are common to all; a plan with a delta names it, `GIVEN`. Their values, and the kind of
the estimator, are described once for all, in the schema of certificates.
"""

from dpppsynth.core.types import JsonObject

Form = dict[str, JsonObject]
# A value that the schema of certificates describes, or `from_parameters` checks.
GIVEN: JsonObject = {}
OBJECT: JsonObject = {"type": "object"}
TEXT: JsonObject = {"type": "string"}
WHOLE: JsonObject = {"type": "integer", "minimum": 1}
POSITIVE: JsonObject = {"type": "number", "exclusiveMinimum": 0}
NULL: JsonObject = {"const": None}


def const(value: str | int) -> JsonObject:
    """Form of a single permitted value."""
    return {"const": value}


def one_among(*values: str | int | None) -> JsonObject:
    """Form of one of several permitted values."""
    return {"enum": list(values)}


def or_null(form: JsonObject) -> JsonObject:
    """Form of a value of the given form, or null."""
    return form | {"type": [form["type"], "null"]}


def two(form: JsonObject) -> JsonObject:
    """Form of two values of the given form."""
    return {"type": "array", "items": form, "minItems": 2, "maxItems": 2}
