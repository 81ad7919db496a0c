"""Catalogue of the codes in guarantees: codes are stored and compared, texts are rendered for readers.

A certificate holds codes and their parameters. The texts may be reworded at any time, as nothing is compared with them.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpppsynth.core.arguments import several, shown
from dpppsynth.core.errors import InputError

# Theorems, by code; proofs in docs/theory.
THEOREMS = {
    "added-up": "{first} and {second}, added up",
    "budget-asked": "the budget asked for",
    "clones": "Theorem K (clones, honest shuffler)",
    "counts": "Theorem 1 (counts)",
    "counts-bounded-error": "Theorem N (counts with bounded error)",
    "field-statistic": "Theorem C (Gaussian field statistic)",
    "kernel-superposition": "Theorem B (superposition of kernels)",
    "kim-lim-3.6": "Kim & Lim, Theorem 3.6 (without its edge term r_alpha(h), by the lemma in docs/theory/kernel.md)",
    "kim-lim-3.8": "Kim & Lim, Theorem 3.8 (model-averaged)",
    "kim-lim-3.9": "Kim & Lim, Corollary 3.9 (model-averaged)",
    "lipschitz-field": "Theorem D (Lipschitz field)",
    "local-randomizer": "Theorem L (local randomizer)",
    "local-trajectories": "Theorem T (trajectories, local)",
    "marked-tents": "Theorem P (marked tents)",
    "moved-points": "Theorem M (moved points)",
    "pair-sums": "Theorem S (capped pair sums)",
    "parallel-levels": "{of}, in parallel over the levels of {by}",
    "posterior-draw": "Theorem A (one posterior draw)",
    "privacy-filter": "a privacy filter (docs/theory/composition.md) of: {of}",
    "proximal-sampler": "Theorem E (proximal sampler)",
    "pyramid": "Theorem H (pyramid of counts)",
    "sequential-composition": "sequential composition (docs/theory/composition.md) of: {of}",
    "tents": "Theorem 2 (tents)",
}
# Assumptions, by code.
ASSUMPTIONS = {
    "bounded-discrete-laplace-noise": (
        "The noise is an exact discrete Laplace variable, drawn with secret randomness of the operating "
        "system, and drawn again where it exceeds the bound on the error."
    ),
    "bounded-moves-redrawn": "Noise that would move a point further than the bound is drawn again.",
    "bounded-slope": "No field steeper than the stated slope can be drawn.",
    "budgets-fixed-beforehand": (
        "How many releases there are, and the budget and kind of each, were settled without looking at what "
        "earlier ones published."
    ),
    "chain-diagnostics-elsewhere": ("The run would have passed its diagnostics on every neighbouring pattern too."),
    "chain-mixed": "The draw, the last one of the first chain, follows the posterior distribution.",
    "chain-seed-secret": "The chain's seed is secret, drawn from the randomness of the operating system.",
    "clock-changes": (
        "The clock on which times are read differs from time by amounts that differ by at most {by} {unit}, as where "
        "clocks are put forward and back; so much more than the stated change is covered."
    ),
    "complete-ledger": (
        "Every release from these data stands in the ledger, which was never exchanged for an older copy."
    ),
    "discrete-gaussian-noise": (
        "The noise is an exact discrete Gaussian variable, drawn with secret randomness of the operating system."
    ),
    "discrete-laplace-noise": (
        "The noise is an exact discrete Laplace variable, drawn with secret randomness of the operating system."
    ),
    "each-release": "This holds for each of the releases: {of}",
    "exact-draw": "The draw is the first one accepted by the exact sampler, in order of attempts.",
    "honest-reports": (
        "At least {reports} of the reports that are shuffled together, the person's own among them, are drawn"
        " by honest devices with the stated law; others may be anything."
    ),
    "honest-shuffler": (
        "A shuffler that colludes with nobody gathers the reports and passes them on in a uniformly random "
        "order, without anything that came with them: who sent them, when, or from where."
    ),
    "inhabited-levels": "Every level of {by} has at least one point, since one without is refused.",
    "length-scale-not-counted": (
        "The length scale is drawn together with the field; what its posterior tells about the pattern is not counted."
    ),
    "mark-tells-persons": ("All points of a person carry the same value of the mark {user!r}, and nobody else's do."),
    "maximum-flow-solved": "The solver finds a maximum flow, which its minimum cut confirms in tests.",
    "model-averaged": (
        "The pattern was itself drawn from the fitted model: delta is a probability over such patterns, so "
        "the promise is model-averaged and not one for the pattern at hand."
    ),
    "no-spatial-information": (
        "The bound leaves the field next to no room to vary: the release carries no spatial information."
    ),
    "not-empty": "The pattern has at least one point, since an empty one is refused.",
    "not-local-privacy": "This is not local differential privacy: locations far apart may be told apart.",
    "one-point-per-person": "Each person has one point in the pattern.",
    "one-point-reported": (
        "The rows of one person, and of nobody else, have one value of the mark {user!r}; the report is about"
        " one of them, drawn at random, and which one stays secret."
    ),
    "one-release": ("This release is counted alone: the epsilons of several releases from the same data add up."),
    "one-report-each": (
        "Every person sends one report, drawn with the stated weights from secret bits, and it is never drawn again."
    ),
    "one-report-each-round": (
        "A person reports at most once in either round, from secret bits, and no report is ever drawn again; "
        "what was announced between the rounds followed from the first one's reports alone."
    ),
    "one-shuffled-message-each-round": (
        "In each of {rounds} rounds every person sends one message, which holds all their reports of that "
        "round, and nobody sees it before it is shuffled with the others of the round."
    ),
    "one-shuffled-report-each": "Every person sends one report, and nobody sees it before it is shuffled.",
    "one-trajectory-each": (
        "Every person has one trajectory, which holds all their points; its length is protected with it."
    ),
    "planar-laplace-noise": (
        "Every point is moved by planar Laplace noise of its own, a real number of which as many digits are "
        "drawn as its rounding needs, with secret randomness of the operating system."
    ),
    "plane-lengths": ("{crs} is a plane of its own, without a projection: lengths in it are taken for true ones."),
    "points-drawn-per-person": (
        "Of each person at most {most} of their points are measured, drawn at random from theirs with secret "
        "randomness of the operating system. All points of a person carry the same value of the mark "
        "{user!r}, and nobody else's do."
    ),
    "points-per-person": "No person has more than {most} points in the pattern.",
    "positions-as-given": (
        "Positions are the coordinates handed to the software, or within a public tolerance the nearest ones in the "
        "window; where their number is secret, points outside may have been left out, and the promise is about those "
        "inside. Errors made earlier (geocoding, rounding) are not covered."
    ),
    "positions-on-network": (
        "Positions are those on the network; where their number is secret, points off it may have been left out, and "
        "the promise is about the others. Errors made earlier (geocoding, the choice of the nearest edge) are not "
        "covered."
    ),
    "proximal-steps-solved": "Every proximal step was solved to the precision of the solver.",
    "public-bandwidth": "Bandwidth and number of patterns are public and were fixed beforehand.",
    "public-client-settings": (
        "Window, grid, mechanism and its settings were chosen without looking at anybody's location."
    ),
    "public-covariance": "The covariance of the statistic is public and was fixed beforehand.",
    "public-field-and-sampler": (
        "Covariance and intercept of the field, and every setting of the sampler, are public and were fixed beforehand."
    ),
    "public-heatmap-settings": (
        "Window, grid, cells kept per level and budget were chosen without looking at the points."
    ),
    "public-level": "The {by} of every point is not protected: it is the same in neighbouring patterns.",
    "public-levels": "The levels of {by} were chosen without looking at the points, and hold all of them.",
    "public-marks": "The types and the range of times were chosen without looking at the points.",
    "public-pair-settings": (
        "Radii, caps, lattices and shares of the budget were chosen without looking at the points."
    ),
    "public-estimator": (
        "Settings of the estimator were chosen without looking at the points; what was released may be looked at."
    ),
    "public-layer": (
        "The layer of the {layer} (SHA-256 {sha256}, source: {source}) is public, as is its coordinate reference "
        "system: nothing of the points went into it."
    ),
    "public-settings": (
        "Window, tolerance at its border, mesh, privacy radius and budget were chosen without looking at the points."
    ),
    "public-settings-on-network": (
        "Network, snapping tolerance, mesh, privacy radius and budget were chosen without looking at the points."
    ),
    "public-trajectory-settings": (
        "Window, grid, longest length and budget were chosen without looking at anybody's trajectory."
    ),
    "public-types": (
        "Types are public, and do not follow from what is protected: neither from places, as a borough does, nor from "
        "times, as day and night do."
    ),
    "real-arithmetic": "Floating-point arithmetic stands for real numbers.",
    "report-alone": ("What else comes with a report (who sent it, when, from where) is not part of the promise."),
    "rounds-apart": ("Who reports in which round does not depend on anybody's location, and nobody reports in both."),
    "same-points": (
        "Every release reads the same points: all that lie in its domain, or, of these, all that have the "
        "value of a mark which the ledger names for it and which neighbouring patterns share."
    ),
    "same-points-or-rule": (
        "Every release reads the same points, or those that a rule picks by looking at one of them alone."
    ),
    "same-points-or-rule-of-person": (
        "Every release reads the same points, or those that a rule picks by looking at one of them (or of one"
        " person's) alone."
    ),
    "secret-bits-of-others": (
        "The random bits of these reports stay secret from others; all else about the places of other persons may be "
        "known."
    ),
    "secret-diagnostics": (
        "Refusals, the number of attempts, running times, modes and diagnostics of the sampler stay secret."
    ),
    "secret-randomness": "The draw uses secret randomness of the operating system.",
    "secret-running-times": "Running times of the draw stay secret.",
    "segments-treated-alike": (
        "Points that lie in one segment of the mesh are treated alike, wherever in it they are."
    ),
    "times-as-read": (
        "Changes of times are those of the numbers in the data: where clocks are put forward or back in between, other "
        "than the time that passes."
    ),
    "true-lengths": (
        "Lengths on the map of {crs} are at most {factor:.7g} times true lengths (on its ellipsoid) in this "
        "domain; the privacy radius is a true length."
    ),
    "within-budget": "The release keeps to its budget, which is checked before the points are used.",
}

# Samplers and entropy of the randomness that protects, by code.
OPENDP, SYSTEM = "(contrib), operating-system entropy", "ChaCha20 keyed with 256 bits of the operating system"
SECRET_NOISE = {
    "discrete-laplace": f"discrete Laplace, OpenDP make_laplace {OPENDP}",
    "redrawn-discrete-laplace": f"drawn again beyond the bound: discrete Laplace, OpenDP make_laplace {OPENDP}",
    "discrete-gaussian": f"discrete Gaussian, OpenDP make_gaussian {OPENDP}",
    "planar-laplace": f"planar Laplace noise as real numbers, {SYSTEM}",
    "poisson-children": f"Poisson patterns around the points, floating point, {SYSTEM}",
    "posterior-draw-exact": f"one posterior draw by the exact sampler, floating point, {SYSTEM}",
    "posterior-draw-nuts": (
        f"one posterior draw by the nuts sampler, chains seeded with 63 secret bits, floating point, {SYSTEM}"
    ),
    "posterior-draw-proximal": f"one posterior draw by the proximal sampler, floating point, {SYSTEM}",
    "reports": "reports drawn by their senders with whole-number weights and secret random bits",
}
SEEDED_NOISE = {
    "seeded-discrete-laplace": "discrete Laplace from a seeded generator: reproducible, not private",
    "redrawn-seeded-discrete-laplace": (
        "drawn again beyond the bound: discrete Laplace from a seeded generator: reproducible, not private"
    ),
    "seeded-discrete-gaussian": "discrete Gaussian from a seeded generator: reproducible, not private",
    "seeded-planar-laplace": "planar Laplace noise from a seeded generator: reproducible, not private",
    "seeded-poisson-children": "Poisson patterns around the points from a seeded generator: reproducible, not private",
    "seeded-posterior-draw-exact": (
        "one posterior draw by the exact sampler from a seeded generator: reproducible, not private"
    ),
    "seeded-posterior-draw-nuts": (
        "one posterior draw by the nuts sampler from a seeded generator: reproducible, not private"
    ),
    "seeded-posterior-draw-proximal": (
        "one posterior draw by the proximal sampler from a seeded generator: reproducible, not private"
    ),
    "seeded-reports": "reports drawn from a seeded generator: reproducible, not private",
}
# Reasons why a release must not be published, by code.
WARNINGS = {
    "large-delta": "Its delta is 1/n or more, which publishing one random record whole satisfies: it promises nothing.",
    "unsure-delta": (
        "Its delta may be 1/n or more, for the number of points n is secret, which publishing one random record whole "
        "would satisfy: it promises nothing."
    ),
    "seeded": "This run was seeded: it is reproducible, and therefore not private.",
}

TEXTS = THEOREMS | ASSUMPTIONS | SECRET_NOISE | SEEDED_NOISE | WARNINGS

# Form of all codes, also of those of other packages, as in certificate.schema.json.
FORM = re.compile(r"[a-z0-9][a-z0-9.-]{0,59}", re.ASCII)
# Codes that several mechanisms state, or that tools look for.
AVERAGED = "model-averaged"
ONE_REPORT = "one-report-each"
TWO_ROUNDS = "one-report-each-round"
SEED = "secret-randomness"
REALS = "real-arithmetic"
LAYER = "public-layer"


@dataclass(frozen=True, init=False)
class Statement:
    """A code with parameters; one without parameters is a plain text.

    Examples
    --------
    >>> Statement("points-per-person", most=3)
    Statement('points-per-person', most=3)
    """

    code: str
    parameters: tuple[tuple[str, Any], ...]

    def __init__(self, code: str, /, **parameters: Any) -> None:
        object.__setattr__(self, "code", code)
        object.__setattr__(self, "parameters", tuple(sorted(parameters.items())))

    def __repr__(self) -> str:
        values = "".join(f", {name}={value!r}" for name, value in self.parameters)
        return f"Statement({self.code!r}{values})"

    def __str__(self) -> str:
        return text(self)


Code = str | Statement


def text(code: Code) -> str:
    """Text of a code; unknown codes, such as another package's, as they are.

    Examples
    --------
    >>> text("counts"), text(Statement("points-per-person", most=3))
    ('Theorem 1 (counts)', 'No person has more than 3 points in the pattern.')
    """
    if not isinstance(code, Statement):
        return TEXTS.get(code, code)
    values = {name: _part(value, code.code) for name, value in code.parameters}
    try:
        return TEXTS[code.code].format(**values)
    except (LookupError, ValueError):
        return repr(code)


def _part(value: Any, code: str) -> Any:
    """Rendered value of a parameter: of codes their texts, of several with their numbers."""
    if isinstance(value, tuple):
        counts = Counter(map(text, value))
        return "; ".join(each if count == 1 else f"{each} ({count} times)" for each, count in counts.items())
    return text(value) if isinstance(value, Statement) or (isinstance(value, str) and code in NESTED) else value


# Statements whose parameters are codes.
NESTED = frozenset({"added-up", "each-release", "parallel-levels", "privacy-filter", "sequential-composition"})


def require_code(name: str, code: Any) -> Code:
    """A valid code; InputError for others, such as a sentence."""
    stated = code.code if isinstance(code, Statement) else code
    if isinstance(stated, str) and FORM.fullmatch(stated):
        return code
    msg = f"{name}: needs a code, such as 'counts', of small letters, digits, dots and hyphens, got {shown(code)}."
    raise InputError(msg)


def require_codes(codes: Any) -> tuple[Code, ...]:
    """Valid codes of assumptions; InputError otherwise."""
    return tuple(require_code("assumptions", each) for each in several("assumptions", codes, object))


def code_json(code: Code) -> Any:
    """JSON form of a code."""
    if not isinstance(code, Statement):
        return code
    stated: dict[str, Any] = {"code": code.code}
    for name, value in code.parameters:
        stated[name] = [*map(code_json, value)] if isinstance(value, tuple) else code_json(value)
    return stated


def code_from_json(name: str, data: Any) -> Code:
    """Code from its JSON form; InputError for invalid ones."""
    if isinstance(data, str):
        return data
    if isinstance(data, Mapping) and isinstance(data.get("code"), str) and all(isinstance(key, str) for key in data):
        return Statement(data["code"], **{key: _read_part(name, each) for key, each in data.items() if key != "code"})
    msg = f"{name}: needs codes, texts or mappings with a code, got {shown(data)}."
    raise InputError(msg)


def codes_from_json(data: Any) -> tuple[Code, ...]:
    """Codes of assumptions from their JSON form; InputError for invalid ones."""
    return tuple(code_from_json("assumes", each) for each in several("assumes", data, object))


def _read_part(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(code_from_json(name, each) for each in value)
    return code_from_json(name, value) if isinstance(value, Mapping) else value


def same_code(claimed: Any, derived: Any) -> bool:
    """Whether two codes, or parts of them, state the same; numbers to rounding across machines."""
    if isinstance(derived, Statement):
        mine = dict(derived.parameters)
        same = isinstance(claimed, Statement) and claimed.code == derived.code
        other = dict(claimed.parameters) if isinstance(claimed, Statement) else {}
        return same and mine.keys() == other.keys() and all(same_code(other[name], mine[name]) for name in mine)
    if isinstance(derived, tuple):
        known = isinstance(claimed, tuple) and len(claimed) == len(derived)
        return known and all(map(same_code, claimed, derived))
    if isinstance(derived, float):
        number = isinstance(claimed, int | float) and not isinstance(claimed, bool)
        return number and math.isclose(claimed, derived, rel_tol=1e-9)
    return type(claimed) is type(derived) and bool(claimed == derived)
