"""Abbreviations of units of length, and the lengths that densities are stated by."""

from dpppsynth.core.rounding import downward

ABBREVIATIONS = {"metre": "m", "kilometre": "km", "foot": "ft", "US survey foot": "US ft", "unit": "units"}


def short_unit(unit: str) -> str:
    """Abbreviate the name of a unit of length."""
    return ABBREVIATIONS.get(unit, unit)


def lengths_in(value: float, unit: str) -> str:
    """A privacy radius with its unit as people say it, in six digits rounded down.

    Examples
    --------
    >>> lengths_in(25.0, "metre"), lengths_in(1.0, "metre"), lengths_in(82.5, "foot"), lengths_in(0.5, "unit")
    ('25 metres', '1 metre', '82.5 feet', '0.5 units of the coordinates')
    >>> lengths_in(25.0, "British foot (Sears 1922)"), lengths_in(2.0, "US survey foot")
    ('25 British feet (Sears 1922)', '2 US survey feet')
    """
    one = value == 1 and unit != "unit"
    return f"{downward(value, 6)} {unit if one else _plural(unit)}"


def _plural(unit: str) -> str:
    if unit == "unit":
        return "units of the coordinates"
    # Some names end in a remark, such as "British foot (Sears 1922)".
    name, _, aside = unit.partition(" (")
    several = f"{name.removesuffix('foot')}feet" if name.endswith("foot") else f"{name}s"
    return f"{several} ({aside}" if aside else several


# What people state densities by, and how many of the unit it has.
LARGE = {
    "metre": ("km", 1000.0),
    "kilometre": ("km", 1.0),
    "foot": ("mile", 5280.0),
    "US survey foot": ("mile", 5280.0),
}


def density_unit(unit: str, *, streets: bool) -> tuple[str, float]:
    """Unit that densities are stated by, and the factor that turns values per unit into them.

    Examples
    --------
    >>> density_unit("metre", streets=False), density_unit("unit", streets=True)
    (('km²', 1000000.0), ('unit of street', 1.0))
    """
    name, length = LARGE.get(unit, (unit, 1.0))
    return (f"{name} of street", length) if streets else (f"{name}²", length**2)
