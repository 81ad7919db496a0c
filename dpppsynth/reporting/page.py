"""The page of a report: the values of its template, and rendering."""

import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from dpppsynth.contract.result import HeatMapped, has_marks
from dpppsynth.core.atomic_files import whole_file
from dpppsynth.core.errors import InputError
from dpppsynth.core.rounding import stated
from dpppsynth.inference.risk import Effects
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.plotting import Background
from dpppsynth.privacy.catalogue import text
from dpppsynth.privacy.interpretation import averaged
from dpppsynth.privacy.nearby_population import people_within, require_reach
from dpppsynth.release import CoxRelease, Release, certificate
from dpppsynth.release.folder import release_folder
from dpppsynth.reporting import certificate_tables, promise, report_pictures
from dpppsynth.reporting import local_privacy as local
from dpppsynth.reporting.heading import Heading
from dpppsynth.reporting.subject import Subject, open_subject
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.time_periods import in_order

NO_HEADING = Heading()
TEMPLATE = "report.html.jinja"
# Mark that identifies a file as a report.
MARK = '<meta name="generator" content="dpppsynth report">'
# Further patterns that are drawn, and levels that are drawn one by one.
FURTHER, LEVELS = 3, 6
# Versions that a command may quote, by PEP 440: a certificate may say anything.
VERSION = re.compile(r"(\d+!)?\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+([.][a-z0-9]+)*)?", re.ASCII)
CORRECTIONS = {
    "isotropic": "Ripley's isotropic edge correction",
    "ang": "Ang's correction for the shape of the network",
}


def page(
    subject: Subject,
    progress: Callable[[str], object] | None = None,
    population: Offset | None = None,
    heading: Heading = NO_HEADING,
) -> str:
    """Fill the template for a release; the same release gives the same text.

    What is no character (half of a surrogate pair, which JSON may hold) is shown by its number.
    """
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    template = (files("dpppsynth.reporting") / TEMPLATE).read_text(encoding="utf-8")
    with report_pictures.house_style():
        shown = _words(subject, population) | _pictures(subject, progress or (lambda _step: None))
    text = environment.from_string(template).render(
        mark=f"{MARK}\n{heading.kept}",
        heading=heading,
        tables=certificate_tables,
        local=local,
        texts=report_pictures,
        **shown,
    )
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _words(subject: Subject, population: Offset | None) -> dict[str, Any]:
    cert, guarantee = subject.certificate, subject.guarantee
    words, plan = subject.words, subject.largest_error_plan
    made = cert["versions"].get("dpppsynth", "")
    described = words.describe(plan, subject.by)
    promised = promise.promise(guarantee, subject.domain, cert["parameters"], words.costs(plan, guarantee))
    if population is not None:
        near = people_within(population, subject.domain, require_reach(guarantee.relation))
        promised.append(near.words(guarantee))
    return {
        "subject": subject,
        "certificate": cert,
        "sentence": text,
        "streets": isinstance(subject.domain, LinearNetwork),
        "mechanism": described if subject.by is None else f"Separately for each level of {subject.by}: {described}",
        "errors": words.errors(plan, subject.by),
        "moved": words.shown(plan),
        "epsilon": stated(guarantee.epsilon()),
        "delta": stated(guarantee.profile.at),
        "version": made if VERSION.fullmatch(made) else None,
        "averaged": averaged(guarantee),
        "weakened": bool(promise.cautions(guarantee, cert["parameters"])),
        "opening": local.opening(guarantee.relation),
        "guarantee": guarantee,
        "domain": subject.domain,
        "reports": words.reports(subject.release.plans),
        "promise": promised,
        "not_promised": promise.not_promised(guarantee, subject.domain, subject.by, moved=words.moved),
        "shuffled": subject.verification.shuffled,
        "sizes": [len(each) for each in subject.patterns],
    }


def _pictures(subject: Subject, say: Callable[[str], object]) -> dict[str, Any]:
    guarantee, domain = subject.guarantee, subject.domain
    release: Any = subject.release
    say("estimating K-functions")
    found = report_pictures.gathering(subject.patterns)
    curve, correction = None, ""
    if found is not None:
        of = "the moved points" if subject.words.moved else f"{len(found.curves)} synthetic pattern(s)"
        alt = f"{'K' if isinstance(domain, LinearNetwork) else 'L'}(r) minus r of {of}."
        curve, correction = report_pictures.gathering_curve(found, domain, alt), CORRECTIONS[found.curves[0].correction]
    say("drawing")
    return {
        "distance_picture": report_pictures.epsilon_curve(
            guarantee, domain, report_pictures.alternative(guarantee, domain)
        ),
        "profile_picture": report_pictures.profile_curve(
            guarantee, "Smallest delta by epsilon; it falls as epsilon grows."
        ),
        "near": subject.words.near,
        "near_remarks": subject.words.pair_remarks(release),
        "gathering": found,
        "gathering_picture": curve,
        "correction": correction,
        **_maps(subject),
    }


def _maps(subject: Subject) -> dict[str, Any]:
    """Maps of patterns, of the first one's levels, and of intensities."""
    first, further, by_level, under = None, [], [], subject.background
    what = "moved points" if subject.words.moved else "first synthetic pattern"
    if subject.patterns:
        first = report_pictures.pattern_map(
            subject.patterns[0], f"Map of the {what}.", by=_coloured(subject), background=under
        )
    for k, each in enumerate(subject.patterns[1 : 1 + FURTHER], 2):
        picture = report_pictures.pattern_map(each, f"Map of pattern {k}.", small=True, background=under)
        further.append((f"Synthetic pattern {k}", picture))
    if subject.by is not None and subject.patterns:
        for level in in_order([*subject.levels])[:LEVELS]:
            at = subject.of_level(subject.patterns[0], level)
            alt = f"Map of the {what}, {subject.by} {level}."
            by_level.append((level, report_pictures.pattern_map(at, alt, small=True, background=under)))
    by = _coloured(subject)
    return {
        "coloured": "" if by is None or first is None else f", colours by {by}",
        "first_map": first,
        "further_maps": further,
        "level_maps": by_level,
        "levels_left_out": max(0, len(subject.levels) - LEVELS) if subject.by is not None else 0,
        **_heat_map(subject),
        "intensity_maps": _intensities(subject),
        "mark_pictures": _mark_pictures(subject),
        **_risk(subject),
    }


def _coloured(subject: Subject) -> str | None:
    """Mark of the first synthetic pattern whose values have colours: that of the levels, or types."""
    release: Any = subject.release
    name: str | None = subject.by
    if has_marks(release) and release.marks.types is not None:
        name = release.marks.types.name
    marks = subject.patterns[0].marks if subject.patterns else None
    return name if name in (marks or {}) else None


def _heat_map(subject: Subject) -> dict[str, Any]:
    """Picture of a heat map with what to think of it; none of other releases."""
    release, words = subject.release, subject.words
    if not isinstance(release, Release) or not isinstance(release, HeatMapped):
        return {"heat_map": None}
    return {
        "heat_map": report_pictures.heat_map(
            release, "Private heat map: where persons are, as shares of the maximum.", subject.background
        ),
        "blur": release.blur(),
        "remarks": words.remarks(release),
        "alarm": words.alarm(release),
        "heat_rows": [certificate_tables.Row(name, value) for name, value in release.made()],
    }


def _risk(subject: Subject) -> dict[str, Any]:
    """Relative risk and effects of covariates, where the release has an offset or covariates."""
    release = subject.release
    if not isinstance(release, CoxRelease) or not release.has_risk:
        return {"risk_map": None, "risk_offset": False, "effect_rows": []}
    model: Any = release.estimator
    rows = [] if model.covariates is None else _effects(release.effects)
    picture = report_pictures.risk_map(release.risk, subject.background)
    return {"risk_map": picture, "risk_offset": model.offset is not None, "effect_rows": rows}


def _effects(effects: Effects) -> list[certificate_tables.Row]:
    """Factors of the intensity for one standard deviation more of each covariate, with 90 % intervals."""
    rows = []
    for name, drawn in effects.items():
        low, middle, high = np.exp(np.quantile(drawn, [0.05, 0.5, 0.95]))
        rows.append(certificate_tables.Row(name, f"{middle:.3g} ({low:.3g} to {high:.3g})"))
    return rows


def _mark_pictures(subject: Subject) -> list[tuple[str, report_pictures.Picture]]:
    """Pictures of types and times, where points have any and something was inferred."""
    release: Any = subject.release
    if not has_marks(release) or not release.inferred:
        return []
    pattern = subject.patterns[0] if subject.patterns else None
    under = subject.background
    return [*report_pictures.mark_pictures(release, pattern, under), *report_pictures.risks_by_type(release, under)]


def _intensities(subject: Subject) -> list[tuple[str, report_pictures.Picture]]:
    words, found, under = subject.words, subject.intensities(), subject.background
    found = {level: found[level] for level in in_order([*found])[:LEVELS]}
    whose = "" if words.counts == "points" else f"of {words.counts}"
    caption, alt = f"{whose and f'{whose}, '}{words.intensity}", f"released intensity{whose and f' {whose}'}"
    if not found:
        return []
    if subject.by is None:
        alone = report_pictures.intensity_map(found[""], f"Map of the {alt}, {words.intensity}.", words.counts, under)
        return [(caption, alone)]
    levels = f"by {subject.by}: {', '.join(found)}"
    alt = f"Maps of the {alt}, {words.intensity}, under one colour scale, {levels}."
    picture = report_pictures.intensity_panels(found, alt, words.counts, under)
    return [(f"{caption}, under one colour scale, {levels}", picture)]


REPORT = certificate.REPORT
# Where the mark of a report stands, in bytes from the beginning.
HEAD = 1000


def write_report(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    population: Offset | None = None,
    heading: Heading = NO_HEADING,
    background: Background | None = None,
    progress: Callable[[str], object] | None = None,
    limit: bool = True,
) -> Path:
    """Write one self-contained HTML page about a saved release, from its public folder alone.

    Parameters
    ----------
    folder : str or Path
        Folder of a saved release, or its certificate.
    out : str or Path, optional
        File to write, ending in .html; ``report.html`` in the folder unless given. An earlier report is replaced, any
        other file is not. Folders above it are made as needed.
    population : Offset, optional
        Public inhabitants, as counts: the page then says how many live within the privacy radius.
    heading : Heading
        Title, custodian and purpose; what it leaves empty is as in an earlier report that is replaced.
    background : Background, optional
        Public roads, districts and places, drawn under every map.
    progress : callable, optional
        Is told what is being done; large patterns take seconds.
    limit : bool
        As in `verify`: refuse what would take long to verify.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        There is no readable release, or `out` is no place for a report.
    PrivacyCheckError
        The certificate does not hold; nothing is written. A release whose certificate says itself that it must not be
        published, such as that of a seeded run, gets a report that says so first.

    Examples
    --------
    >>> import tempfile
    >>> from dpppsynth import LaplaceSynthesizer, PointPattern, Window
    >>> square = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
    >>> release = LaplaceSynthesizer(1.0, alpha=25.0).release(PointPattern([[400, 300], [500, 700]], square))
    >>> with tempfile.TemporaryDirectory() as place:
    ...     written = write_report(release.save(place))
    >>> written.name
    'report.html'
    """
    place = release_folder(folder)
    target = _place(place / REPORT if out is None else out)
    whole = heading.over(Heading.of(target))
    text = render_report(place, progress, population=population, heading=whole, background=background, limit=limit)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(target) as file:
            file.write(text.encode())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no name for a file here"
        msg = f"out: cannot write {target} ({reason}); choose another place"
        raise InputError(msg) from None
    return target


def render_report(
    folder: str | Path,
    progress: Callable[[str], object] | None = None,
    *,
    population: Offset | None = None,
    heading: Heading = NO_HEADING,
    background: Background | None = None,
    limit: bool = True,
) -> str:
    """The page that `write_report` writes, as text; errors as there, but for those of `out`."""
    subject = open_subject(folder, progress, background=background, limit=limit)
    return page(subject, progress, population, heading)


def is_report(path: Path) -> bool:
    """Whether a file is a report that was written here, and may be replaced by another."""
    try:
        with path.open("rb") as file:
            return MARK.encode() in file.read(HEAD)
    except (OSError, ValueError):
        return False


def _place(out: str | Path) -> Path:
    """Path of the report; a file that is no earlier report is refused, before any work is done."""
    try:
        target = Path(out)
        # Python's own answer to a name with a NUL has changed over time.
        taken = "\0" not in str(target) and target.exists()
    except (TypeError, ValueError, OSError):
        msg = f"out: must be the name of a file ending in .html, this {type(out).__name__} is none; such as {REPORT}"
        raise InputError(msg) from None
    if target.suffix.lower() != ".html" or "\0" in str(target):
        msg = f"out: a report is a file ending in .html, got {target.name!r}; such as {REPORT}"
        raise InputError(msg)
    if taken and not is_report(target):
        msg = f"out: {target} exists and is no earlier report, which alone is replaced; choose another name"
        raise InputError(msg)
    return target
