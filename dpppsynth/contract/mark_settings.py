"""Settings of types and times from plain values, and their protection."""

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dpppsynth.contract.settings import PRIVACY, Setting
from dpppsynth.core.errors import InputError
from dpppsynth.privacy.relations import PROTECTED, PUBLIC
from dpppsynth.spatial.marks import is_number, listed

if TYPE_CHECKING:
    from dpppsynth.spatial.mark_space import Marks, Times, Types

PERIODS = ("day", "week", "none")
# Of a range without a clock, unless given.
HATS = 8
MONTH = re.compile(r"\d{4}-\d\d")
WHOLE_RANGE, NOTHING = "all", "none"
DESCRIBED = (
    Setting(
        name="types",
        argument="marks",
        metavar="COLUMN=A,B,...",
        help="Column of types, and all types that points may have, chosen without looking at them; quote those with "
        "commas, or repeat the option for each",
    ),
    Setting(
        name="type_bins",
        argument="edges",
        metavar="COLUMN=A,B,C,...",
        help="Instead of types: column of numbers, and the edges of the bins they are put into",
    ),
    Setting(name="time", argument="marks", metavar="COLUMN", help="Column of times: numbers or ISO dates"),
    Setting(
        name="period",
        choices=PERIODS,
        help="Clock of the times: hours of the day, hours of the week (Monday 0), or none",
        otherwise="none if --time-range is given",
    ),
    Setting(
        name="hats",
        kind=int,
        help="Instants about which times are counted, evenly spread over their range",
        otherwise="8, and 14 for a week",
    ),
    Setting(
        name="time_range",
        metavar="A,B",
        help="Range of times without a clock: two numbers, or two dates such as 2019-01-01,2024-01-01 (in days then)",
    ),
    Setting(
        name="time_zone",
        argument="zone",
        help="Time zone of clock and dates, such as Europe/London, to which instants with an offset are taken",
    ),
    Setting(
        name="date_format",
        argument="form",
        choices=("iso", "dmy", "mdy", "month", "excel"),
        help="How dates stand in the file: 2024-12-31 (understood always), 31.12.2024 or 31/12/2024, 12/31/2024, "
        "2024-12 (in a range of whole months), or numbers of a spreadsheet",
        otherwise="iso",
    ),
)
PROTECTION = (
    Setting(
        name="protect_time",
        metavar="X|all|none",
        panel=PRIVACY,
        help="Change of a point's time that is protected: by at most X, to any, or not at all",
        otherwise="all, under --relation replace-one",
    ),
    Setting(
        name="protect_types",
        option="--protect-types/--no-protect-types",
        kind=bool,
        panel=PRIVACY,
        help="Protect the type of a point, which may become any other",
        otherwise="protected, under --relation replace-one",
    ),
)


def described_marks(values: Mapping[str, Any]) -> "Marks | None":
    """Types and times from the options named in `DESCRIBED`, None without any; InputError."""
    from dpppsynth.spatial.mark_space import Marks

    types, times = _types(values), _times(values)
    return None if types is None and times is None else Marks(types, times)


def protection(values: Mapping[str, Any], marks: "Marks | None", *, near: bool) -> dict[str, Any]:
    """Protection of types and times for a relation; both must be stated under a privacy radius (`near`); InputError."""
    types = marks is not None and marks.types is not None
    times = marks is not None and marks.times is not None
    own = (("protect_time", times, "--time"), ("protect_types", types, "--types"))
    for name, there, option in own:
        if values[name] is not None and not there:
            msg = f"{name}: goes with {option}; give both"
            raise InputError(msg)
    examples = ("--protect-time 1, all or none", "--protect-types or --no-protect-types")
    for (name, there, _), example in zip(own, examples, strict=True):
        if near and there and values[name] is None:
            msg = f"{name}: with a privacy radius it has to be said what is protected of each mark; give {example}"
            raise InputError(msg)
    types_told = {None: None, True: PROTECTED, False: PUBLIC}
    return {"time": _protected_time(values["protect_time"]), "types": types_told[values["protect_types"]]}


def require_unprotected(values: Mapping[str, Any]) -> None:
    """Refuse protection of times and types where points come and go with them, with an InputError."""
    given = [each.name for each in PROTECTION if values.get(each.name) is not None]
    if given:
        them = "it" if len(given) == 1 else "them"
        msg = f"{', '.join(given)}: under add-remove points come and go with all their marks; leave {them} out"
        raise InputError(msg)


def _protected_time(given: str | None) -> float | str | None:
    if given is None:
        return None
    if given in (WHOLE_RANGE, NOTHING):
        return PROTECTED if given == WHOLE_RANGE else PUBLIC
    change = float(given) if is_number(given) else math.nan
    if not 0 < change < math.inf:
        msg = f"protect_time: needs a positive number in the unit of the times, 'all' or 'none', got {given!r}"
        raise InputError(msg)
    return change


def _types(values: Mapping[str, Any]) -> "Types | None":
    from dpppsynth.spatial.mark_space import Types

    if values["type_bins"] is not None:
        if values["types"] is not None:
            msg = (
                "type_bins: points have one type; give --types or --type-bins, not both, or write both into one "
                "column, as in --types 'group=2021 child,2021 adult,2022 child,2022 adult'"
            )
            raise InputError(msg)
        name, edges = _named("type_bins", values["type_bins"], "age=0,18,40,65,120")
        return Types.bins(name, _numbers("type_bins", edges))
    if values["types"] is None:
        return None
    name, words = _named("types", values["types"], "offence=burglary,theft")
    return Types(name, words)


def _times(values: Mapping[str, Any]) -> "Times | None":
    from dpppsynth.spatial.mark_space import Times

    if values["time"] is None:
        for name in ("period", "hats", "time_range", "time_zone", "date_format"):
            if values[name] is not None:
                msg = f"{name}: goes with --time, the column of times; give both"
                raise InputError(msg)
        return None
    more: dict[str, Any] = {"hats": values["hats"]} if values["hats"] is not None else {}
    zone, more["form"] = values["time_zone"] or "", values["date_format"] or "iso"
    if values["period"] in ("day", "week"):
        if values["time_range"] is not None:
            msg = "time_range: a clock has its own range; leave --time-range or --period out"
            raise InputError(msg)
        make = Times.day if values["period"] == "day" else Times.week
        return make(values["time"], **more, zone=zone)
    if values["time_range"] is None:
        msg = "period: times need --period day, --period week, or --time-range such as 2019-01-01,2024-01-01"
        raise InputError(msg)
    return _line(values["time"], values["time_range"], more, zone)


def _line(name: str, text: str, more: Mapping[str, Any], zone: str) -> "Times":
    """Range of times without a clock, between numbers or dates."""
    from dpppsynth.spatial.mark_space import Times

    ends = [each.strip() for each in text.split(",")]
    if len(ends) != 2:
        msg = f"time_range: needs two numbers or two dates with a comma between them, got {text!r}"
        raise InputError(msg)
    more = {"hats": HATS, **more}
    if any("-" in each[1:] and "e-" not in each.lower() for each in ends):
        start, end = (f"{each}-01" if MONTH.fullmatch(each) else each for each in ends)
        return Times.between(name, start, end, **more, zone=zone)
    if zone:
        msg = "time_zone: goes with a clock or with dates; leave it out"
        raise InputError(msg)
    first, last = _numbers("time_range", ends)
    return Times(name, first, last, **more)


def _named(argument: str, text: str, example: str) -> tuple[str, list[str]]:
    """Name of a column, and the words after it."""
    name, equals, words = text.partition("=")
    if not name.strip() or not equals:
        msg = f"{argument}: needs a column and its values, such as {example}, got {text!r}"
        raise InputError(msg)
    return name.strip(), listed(argument, words)


def _numbers(argument: str, words: list[str]) -> list[float]:
    try:
        return [float(word) for word in words]
    except ValueError:
        msg = f"{argument}: needs numbers with commas between them, got {','.join(words)!r}"
        raise InputError(msg) from None
