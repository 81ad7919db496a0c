"""Tables of a report for auditors: certificate entries as rows of text."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from dpppsynth.contract.estimator import COVARIATES, OFFSET, OFFSET_RASTER, POSTERIOR
from dpppsynth.core.crs import crs_label
from dpppsynth.core.rounding import downward, stated
from dpppsynth.core.units import short_unit
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.privacy.catalogue import text
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.interpretation import moved_within
from dpppsynth.privacy.relations import CappedRelation, GeoIndistinguishability, Relation
from dpppsynth.privacy.shuffling import ShuffledPrivacy
from dpppsynth.release.certificate import FILENAME, PAIR_SUMS, STATISTIC, SYNTHETIC, file_hash
from dpppsynth.release.rederive import stated_budget
from dpppsynth.reporting import local_privacy as local
from dpppsynth.reporting.subject import Subject, exact
from dpppsynth.spatial.domains import Domain

GRID = (0.0, 0.1, 0.25, 0.5, 1.0)
# A list with more numbers is left to the certificate.
LONGEST = 12


class Row(NamedTuple):
    """Name and value; `mono` for values that are copied rather than read."""

    name: str
    value: str
    mono: bool = False


class File(NamedTuple):
    """A file of a release."""

    name: str
    what: str
    size: str
    sha256: str


def files(subject: Subject) -> list[File]:
    """The files of the release: those the certificate lists, and the certificate."""
    domain = subject.certificate["domain"]["file"]
    listed = sorted(subject.certificate["files"].items())
    own = subject.folder / FILENAME
    pattern = "moved points" if subject.words.moved else "synthetic pattern"
    return [
        File(FILENAME, "the certificate", _size(own.stat().st_size), file_hash(own)),
        *(
            File(name, _purpose(name, domain, pattern), _size((subject.folder / name).stat().st_size), digest)
            for name, digest in listed
        ),
    ]


def domain_rows(domain: Domain) -> list[Row]:
    """Kind, extent, coordinate reference system and unit."""
    x0, y0, x1, y1 = domain.bounds
    unit = short_unit(domain.unit)
    if isinstance(domain, LinearNetwork):
        size = f"street network, {_measure(domain.length)} {unit} in {len(domain.edges):,} edges"
    else:
        size = f"{'rectangle' if domain.is_rectangle else 'polygon'}, {_measure(domain.size)} square {unit}"
    on_map = f"at most {exact(domain.scale_factor)} times true ones; a privacy radius is a true length"
    crs = "none: plain numbers" if domain.crs is None else crs_label(domain.crs)
    return [
        Row("Domain", size),
        Row("Bounding box", f"x {x0:.10g} to {x1:.10g}, y {y0:.10g} to {y1:.10g}"),
        Row("Coordinate reference system", crs),
        Row("Unit of length", domain.unit),
        *([] if domain.crs is None else [Row("Lengths on the map", on_map)]),
    ]


def guarantee_rows(subject: Subject) -> list[Row]:
    """Everything an auditor compares: claim, randomness, versions, fingerprints, ledger entry."""
    cert = subject.certificate
    claimed, relation = cert["guarantee"], cert["guarantee"]["relation"]
    mu = subject.guarantee.mu
    unit = short_unit(subject.domain.unit)
    plain = subject.guarantee.relation
    cap = f"points of one person: {_cap(plain)}"
    if local.by_reports(plain):
        cap = f"one {'trajectory' if local.by_trajectories(plain) else 'report'} of each"
    sent = subject.words.reports(subject.release.plans)
    radius = [Row("Privacy radius alpha", f"{exact(relation['alpha'])} {unit}")] if "alpha" in relation else []
    return [
        Row("Mechanism", cert["mechanism"], mono=True),
        Row("Theorem", subject.guarantee.theorem_text),
        Row("Relation", f"{relation['name']}: {subject.guarantee.neighbouring}"),
        *radius,
        Row("Unit of privacy", f"{plain.unit}; {cap}"),
        *([] if sent is None else [Row("Reports", sent)]),
        Row("epsilon of the budget", _both(_budget(cert["parameters"]))),
        Row("epsilon", _both(claimed["profile"]["epsilon"])),
        Row("delta", _both(claimed["profile"]["delta"])),
        Row("mu (Gaussian differential privacy)", "not applicable" if mu is None else _both(mu)),
        *(Row(f"profile.{name}", value, mono=True) for name, value in _flat(claimed["profile"])
          if name not in ("epsilon", "delta", "mu")),
        Row("Noise source", text(cert["noise"])),
        Row("Seeded", "yes: reproducible, and therefore not private" if cert["seeded"] else "no"),
        Row("Releasable", "yes" if cert["releasable"] else "no"),
        Row("Warning", text(cert["warning"] or "none")),
        *(Row(f"Version of {name}", value, mono=True) for name, value in sorted(cert["versions"].items())),
        Row("Ledger entry", cert.get("ledger", "none on this certificate"), mono="ledger" in cert),
        *([] if "snap" not in cert else [Row("Places", moved_within(cert["snap"], subject.domain))]),
        Row("Fingerprint of the domain", cert["domain"]["fingerprint"], mono=True),
        Row("Certificate schema", exact(cert["schema_version"])),
        Row("Content hash", cert["content_hash"], mono=True),
    ]  # fmt: skip


def shuffled_rows(second: ShuffledPrivacy | None) -> list[Row]:
    """Rows of the second guarantee, for reports mixed by an honest shuffler; empty where there is none."""
    if second is None:
        return []
    return [
        Row("Theorem", text(second.theorem)),
        Row("Honest reports at least", f"{second.reports:,}"),
        Row("epsilon of the local bound", exact(second.local_epsilon), mono=True),
        Row("epsilon, shuffled", stated(second.epsilon, 6), mono=True),
        Row("delta, shuffled", exact(second.delta), mono=True),
    ]


def _cap(relation: Relation) -> str:
    if not isinstance(relation, CappedRelation):
        return "any number" if relation.user_cap is None else "any number, of which one is reported, drawn at random"
    cap = f"at most {relation.max_points_per_person}"
    return cap if relation.user is None else f"any number, of which {cap} count, drawn at random"


def parameter_rows(certificate: Mapping[str, Any]) -> list[Row]:
    """All public parameters by their paths; long lists are left to the certificate."""
    return [Row(name, value, mono=True) for name, value in _flat(certificate["parameters"])]


def profile_rows(guarantee: Guarantee) -> list[tuple[str, str, str]]:
    """(epsilon, smallest delta, remark) at fixed epsilons and at the claimed one, rounded up where not exact."""
    claimed = guarantee.epsilon()
    # A claim a few digits below a round number is that number's own row.
    at = [each for each in GRID if not math.isclose(each, claimed, rel_tol=1e-6)]
    rows = {each: (exact(each), stated(guarantee.delta(each), 6), "") for each in at}
    rows[claimed] = (stated(claimed, 6), stated(guarantee.profile.at, 6), "claimed")
    return [rows[each] for each in sorted(rows)]


def distance_rows(guarantee: Guarantee) -> list[tuple[str, str]]:
    """(distance, epsilon) for one point that moves: the farthest distance, then half as far, and so on; rounded up."""
    pairs = guarantee.by_distance
    chosen = {pairs[math.ceil(len(pairs) / 2**k) - 1] for k in range(len(pairs).bit_length())}
    relation = guarantee.relation
    if pairs and isinstance(relation, GeoIndistinguishability):
        chosen.add(pairs[0])
    if pairs and relation.unit == "point" and math.isfinite(relation.reach):
        chosen.add((relation.reach, guarantee.epsilon()))
    # Distances that read the same get the largest of their epsilons.
    rows: dict[str, float] = {}
    for distance, epsilon in sorted(chosen):
        rows[downward(distance)] = max(epsilon, rows.get(downward(distance), 0.0))
    return [(distance, stated(epsilon, 6)) for distance, epsilon in rows.items()]


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """(path, value) of every entry of nested JSON."""
    if isinstance(value, Mapping) and value:
        for name, each in sorted(value.items()):
            yield from _flat(each, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
        for k, each in enumerate(value):
            yield from _flat(each, f"{path}[{k}]")
    elif _numbers(value) > LONGEST:
        yield path, f"{_numbers(value):,} numbers; see {FILENAME}"
    else:
        yield path, exact(value)


def _budget(parameters: Mapping[str, Any]) -> float:
    """Epsilon that was asked for; all levels have the same."""
    stated = parameters.get("strata", [{"parameters": parameters}])
    return stated_budget(stated[0]["parameters"])[0]


def _both(value: float) -> str:
    """A number as people write it, rounded towards less privacy, and as it stands on the certificate."""
    as_written, rounded = exact(value), stated(value)
    return rounded if as_written in (rounded, f"{rounded}.0") else f"{rounded} (on the certificate {as_written})"


def _numbers(value: Any) -> int:
    """Number of numbers in a list, at any depth."""
    if isinstance(value, list):
        return sum(map(_numbers, value))
    return int(isinstance(value, int | float))


def _measure(value: float) -> str:
    return f"{value:,.0f}" if 1e4 <= value < 1e15 else f"{value:.6g}"


def _size(count: int) -> str:
    return f"{count:,} bytes"


def _purpose(name: str, domain: str, pattern: str) -> str:
    endings = {
        STATISTIC: "what the budget was spent on",
        POSTERIOR: "posterior draws",
        OFFSET: "public offset of the model",
        COVARIATES: "public covariates of the model, standardised",
        OFFSET_RASTER: "public offset of the model, a raster",
        PAIR_SUMS: "the same as a table",
    }
    if found := SYNTHETIC.fullmatch(name):
        return pattern + {"draw_": ", from a posterior draw", "mean_": ", from the posterior mean"}.get(
            found["source"] or "", ""
        )
    if name == domain:
        return "the public domain"
    return next((what for ending, what in endings.items() if name.endswith(ending)), "part of the release")
