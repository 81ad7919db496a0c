"""Shuffled reports as a public option of local mechanisms: how many, at which delta, and what is stated then."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from dpppsynth.contract.parameter_forms import WHOLE
from dpppsynth.contract.settings import PRIVACY
from dpppsynth.core.arguments import entries, probability, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.privacy.bounds import void_delta
from dpppsynth.privacy.shuffling import ShuffledPrivacy, shuffled_reports, shuffled_rounds

# Declarations of the two settings.
SHUFFLED: dict[str, Any] = {
    "help": "Least number of honest reports that an honest shuffler mixes: a second statement beside the local bound",
    "panel": PRIVACY,
}
SHUFFLE_DELTA: dict[str, Any] = {"help": "Delta of the statement on shuffled reports", "panel": PRIVACY}


@dataclass(frozen=True)
class Shuffle:
    """Public numbers behind a statement on shuffled reports.

    Attributes
    ----------
    reports : int
        Least number of honest reports that are shuffled together; in each round, where there are two.
    delta : float
    """

    reports: int
    delta: float
    form: ClassVar[JsonObject] = {
        "type": "object",
        "properties": {"reports": WHOLE, "delta": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}},
        "required": ["reports", "delta"],
        "additionalProperties": False,
    }

    def __post_init__(self) -> None:
        object.__setattr__(self, "reports", whole("shuffled", self.reports, 1, most=2**53))
        object.__setattr__(self, "delta", float(probability("shuffle_delta", self.delta)))

    @classmethod
    def of(cls, shuffled: Any, delta: Any) -> Self | None:
        """The numbers of two settings, which go together; None where neither is given."""
        if shuffled is None and delta is None:
            return None
        if shuffled is None or delta is None:
            given, missing = ("shuffle_delta", "shuffled") if shuffled is None else ("shuffled", "shuffle_delta")
            msg = f"{missing}: {given} needs it; give both, such as shuffled=10_000 and shuffle_delta=1e-8, or neither."
            raise InputError(msg)
        return cls(shuffled, delta)

    @classmethod
    def stated(cls, parameters: JsonRead) -> Self | None:
        """The numbers on a certificate; None where nothing is stated of a shuffler."""
        if "shuffled" not in parameters:
            return None
        return cls(**entries("shuffled", parameters["shuffled"], ("reports", "delta")))

    def to_dict(self) -> JsonObject:
        """JSON form, as it stands among the public parameters."""
        return {"reports": self.reports, "delta": self.delta}

    def require(self, n: int, least: int) -> None:
        """Refuse more honest reports than there are (in the smaller round), and a delta that promises nothing."""
        if self.reports > least:
            msg = (
                f"shuffled: {self.reports} honest reports are more than the {least} that are shuffled together; state "
                "how many of these are honest at least."
            )
            raise InputError(msg)
        if self.delta >= void_delta(n, None):
            msg = f"shuffle_delta: {self.delta:g} is 1/n or more for {n} persons, which promises nothing; take less."
            raise InputError(msg)

    def one_message(self, local_epsilon: float, clones: float | None = None) -> ShuffledPrivacy:
        """Statement where everybody sends one message within `local_epsilon`."""
        return shuffled_reports(local_epsilon, self.reports, self.delta, clones=clones)

    def each_round(self, epsilons: tuple[float, ...]) -> ShuffledPrivacy:
        """Statement where everybody sends one message in each round, within these epsilons."""
        return shuffled_rounds(epsilons, self.reports, self.delta)
