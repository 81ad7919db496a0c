"""A guarantee on the screen: one sentence, and what it rests on for those who ask."""

from typing import TYPE_CHECKING

from dpppsynth.cli.console import show_text

if TYPE_CHECKING:
    from dpppsynth.privacy import Guarantee
    from dpppsynth.spatial.domains import Domain


def show_promise(
    guarantee: "Guarantee", domain: "Domain", *, verbose: bool, start: str = "", together: str = ""
) -> None:
    """Print the promise in one sentence, and with `verbose` its assumptions.

    `together` says of releases of one ledger what the assumption of a single release would deny.
    """
    from dpppsynth.privacy.bounds import ONE_RELEASE
    from dpppsynth.privacy.interpretation import one_sentence

    assumptions = [together if together and each == ONE_RELEASE else each for each in guarantee.assumptions]
    count = f"{len(assumptions)} assumption{'s' if len(assumptions) > 1 else ''}"
    rests = f" It is assumed that:\n{_listed(assumptions)}" if verbose else f" It rests on {count}: see --verbose."
    show_text(f"{start}{one_sentence(guarantee, domain)} Proved by {guarantee.theorem}.{rests}")


def _listed(sentences: list[str]) -> str:
    return "\n".join(f"({i}) {sentence}" for i, sentence in enumerate(sentences, 1))
