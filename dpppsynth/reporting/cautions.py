"""Report text on weaknesses of a guarantee, shown before the guarantee itself."""

from collections.abc import Iterator, Mapping
from typing import Any

from dpppsynth.core.rounding import stated
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.reporting import local_privacy as local

# Mark of theorems that hold only on average over their model.
AVERAGED = "model-averaged"
# Probability of publishing a random point whole that a claim may leave room for, above which its delta is called weak.
EXPOSING = 0.01


def cautions(guarantee: Guarantee, parameters: Mapping[str, Any]) -> list[str]:
    """Paragraphs about weaknesses of a guarantee; none for most releases.

    Parameters
    ----------
    guarantee : Guarantee
    parameters : mapping
        Public parameters, as they stand on the certificate.

    Examples
    --------
    >>> from dpppsynth.privacy import ApproximateDP, ReplaceOne
    >>> weak = Guarantee(ReplaceOne(), ApproximateDP(1.0, 1e-3), "some theorem", ("none",))
    >>> "with a probability of up to 0.2" in cautions(weak, {"n": 200})[0], cautions(weak, {"n": 2})
    (True, [])
    """
    said = local.cautions(guarantee)
    if averaged(guarantee):
        said.append(
            "Attention: this is not differential privacy as it is usually meant. What is proved holds on average over "
            "data that the model might have produced. For the data at hand it may fail, and nobody can tell whether it "
            "does."
        )
    if any(each.get("sampler") == "nuts" for each in _parts(parameters)):
        said.append(
            "Attention: the random draw that protects was made by an approximate method. That it is good enough is "
            "assumed, not proved; the assumptions say so."
        )
    exposed = exposure(guarantee, parameters)
    if exposed > EXPOSING:
        said.append(
            "Attention: this is a weak promise, because its delta is large for so many points. Taken by itself, the "
            "claim would also allow one point of the data, chosen at random, to be published as it is with a "
            f"probability of up to {stated(exposed, 2)}. Whether this release leaves room for such a thing, only its "
            "privacy profile can tell."
        )
    return said


def averaged(guarantee: Guarantee) -> bool:
    """Whether the guarantee holds on average over a model alone."""
    return AVERAGED in guarantee.theorem


def exposure(guarantee: Guarantee, parameters: Mapping[str, Any]) -> float:
    """Probability of publishing a random point whole that the same epsilon and delta would allow.

    Publishing one of n points with probability p changes no outcome's probability by more than `p k / n` when a
    person's k points change. Zero where n is secret: nothing is said then.
    """
    counts = [each["n"] for each in _parts(parameters) if each.get("n") is not None]
    cap = getattr(guarantee.relation, "max_points_per_person", 1)
    return min(1.0, sum(counts) * guarantee.profile.at / cap)


def _parts(parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of the release, or of the releases of all levels."""
    if "strata" in parameters:
        return (each["parameters"] for each in parameters["strata"])
    return iter([parameters])
