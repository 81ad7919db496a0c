"""Abbreviations of units of length."""

ABBREVIATIONS = {"metre": "m", "kilometre": "km", "foot": "ft", "US survey foot": "US ft", "unit": "units"}


def short_unit(unit: str) -> str:
    """Abbreviate the name of a unit of length."""
    return ABBREVIATIONS.get(unit, unit)
