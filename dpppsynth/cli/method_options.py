"""`MethodOptions`: the mechanism that was asked for, with everything public that its release depends on."""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpppsynth.core.errors import InputError
from dpppsynth.core.single_entry_cache import SingleEntryCache
from dpppsynth.core.wording import add_options

if TYPE_CHECKING:
    from inspect import Parameter

    from dpppsynth.contract.mechanism_options import Given, MechanismOptions
    from dpppsynth.privacy import Relation
    from dpppsynth.spatial.domains import Domain


class MethodOptions:
    """A mechanism, and the values given for its settings.

    Attributes
    ----------
    name : str
        Of the mechanism, as certificates have it; on another kind of domain it may be its sibling's.
    options : MechanismOptions
    given : Given
    """

    # Whether only mechanisms are meant whose clients send one report each.
    reports = False

    name: str
    options: "MechanismOptions"
    given: "Given"

    def __init__(self, values: Mapping[str, Any], crs: str | None = None) -> None:
        from dpppsynth.cli import generated_options as known

        values = dict(values)
        method, name = values.pop("method", None), values.pop("mechanism", None)
        method = None if method is None else str(method)
        offers = known.meant(method, name, reports=self.reports) or known.offered(reports=self.reports)
        self.name, self.options, called = known.choose(offers, method, name)
        add_options(known.vocabulary(self.options, values))
        named = name is not None
        self.given = replace(known.given(self.options, values, called, named=named), crs=crs)
        self._last: SingleEntryCache[Any] = SingleEntryCache()

    @classmethod
    def parameters(cls, method: str | None, name: str | None) -> "tuple[list[Parameter], list[Parameter]]":
        """The options of the mechanism that is named, or of all, which are imported for it; and those for experts."""
        from dpppsynth.cli.generated_options import meant, offered, parameters

        offers = meant(method, name, reports=cls.reports) or offered(reports=cls.reports)
        return parameters(offers, methods=True)

    def neighbours(self) -> "Relation":
        """The neighbouring relation in force."""
        return self.options.relation(self.given)

    def synthesizer(self, domain: "Domain", n: int | None = None) -> Any:
        """The synthesizer, with its mesh where its fineness is given; `n` is the public number of points, if known.

        The same one for the same domain: what it has settled without the points it need not settle again.
        """
        # What is wrong with the relation is said before anything is made on the domain.
        self.neighbours()
        key = domain.fingerprint(), n if self.options.sized else None
        return self._last.get(key, lambda: self.options.synthesizer(self.given, domain, n))

    def require_planned(self, mechanism: str) -> None:
        """Refuse the name of another mechanism than the one that was settled on, with an InputError."""
        if self.given.named and mechanism != self.name:
            msg = f"mechanism: with these options, on this domain, {self.name} is {mechanism}; take that name"
            raise InputError(msg)


class ReportMethodOptions(MethodOptions):
    """A mechanism whose clients send one report each, all at once or in one of two rounds."""

    reports = True

    def reporting(self, domain: "Domain", n: int | None, after: str | None) -> tuple[Any, Any]:
        """The mechanism, and what clients report to: itself, or the round that `n` and `after` tell."""
        made = self.synthesizer(domain)
        return made, self.options.reporting(made, domain, n, after)


class OptionalMethodOptions(MethodOptions):
    """Options of a mechanism that need not be named."""

    def __init__(self, values: Mapping[str, Any], crs: str | None = None) -> None:
        self.values, self.crs = values, crs

    def settled(self) -> MethodOptions:
        """The mechanism that was asked for."""
        return MethodOptions(self.values, self.crs)


def require_new_folder(path: Path) -> None:
    """Refuse an output folder that is in use or cannot be made, before anything is spent, with an InputError."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        msg = f"--out: {path} exists and is not an empty folder; choose another, releases are never overwritten"
        raise InputError(msg)
    above = next(each for each in path.absolute().parents if each.exists())
    try:
        tempfile.TemporaryDirectory(dir=above).cleanup()
    except OSError:
        msg = f"--out: no folder can be made in {above}; choose a place where you may write"
        raise InputError(msg) from None
