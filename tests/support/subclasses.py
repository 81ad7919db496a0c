"""Plans and other records as objects of a subclass, through which tests see what is asked of them, or plant a fault."""

from dataclasses import fields


def recast(record, kind, **changes):
    """An object of a subclass `kind` with the fields of a record, but for changes."""
    return kind(**{each.name: getattr(record, each.name) for each in fields(record) if each.init} | changes)
