"""What the releases of a ledger promise together, in the words of a guarantee."""

from collections import Counter
from collections.abc import Sequence

from dpppsynth.ledger.budget import Budget
from dpppsynth.ledger.history import Entry
from dpppsynth.privacy.accounting import FIXED_BEFOREHAND
from dpppsynth.privacy.bounds import ONE_RELEASE
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.local import ONE_REPORT, TWO_ROUNDS

COMPLETE = "Every release from these data stands in the ledger, which was never exchanged for an older copy."
# What holds within one release says nothing about another one.
EACH = {
    sentence: f"This holds for each of the releases: {sentence[0].lower()}{sentence[1:]}"
    for sentence in (ONE_REPORT, TWO_ROUNDS)
}
EVERYWHERE = "Two patterns are neighbouring only if they are, or are the same, in each of the domains of the releases."


def together(budget: Budget, entries: Sequence[Entry]) -> Guarantee | None:
    """Guarantee of several releases from the same points; None without any."""
    profiles = [entry.guarantee.profile for entry in entries]
    total = budget.total(profiles)
    if total is None:
        return None
    own = [sentence for entry in entries for sentence in entry.guarantee.assumptions if sentence != ONE_RELEASE]
    if len(entries) > 1:
        own = [EACH.get(sentence, sentence) for sentence in own]
    # Not by the kinds released so far: that no other kind was may itself depend on what was published.
    fixed = [] if budget.adaptive or budget.delta == 0 else [FIXED_BEFOREHAND]
    several = [EVERYWHERE] if len({entry.domain["fingerprint"] for entry in entries}) > 1 else []
    return Guarantee(
        budget.relation, total, _theorem(budget, entries), tuple(dict.fromkeys([*own, *fixed, *several, COMPLETE]))
    )


def _theorem(budget: Budget, entries: Sequence[Entry]) -> str:
    how = "a privacy filter" if budget.adaptive else "sequential composition"
    times = Counter(entry.guarantee.theorem for entry in entries)
    parts = [theorem if count == 1 else f"{theorem} ({count} times)" for theorem, count in times.items()]
    return f"{how} (docs/theory/composition.md) of: {'; '.join(parts)}"
