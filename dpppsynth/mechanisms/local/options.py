"""Options of mechanisms whose clients send reports: the window, rounds, and refusals of what single reports lack."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, ClassVar, cast

from dpppsynth.contract.object_options import require_window
from dpppsynth.contract.settings import ParsedOptions, Settings
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.local.one_report import require_told
from dpppsynth.mechanisms.local.statistic import Shuffle
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import Local, Relation
from dpppsynth.spatial.domains import Domain

# Mark under which a ledger knows the persons of one round.
ROUND = "reporting round"


class ReportSettings(Settings):
    """Settings of mechanisms whose clients send one report each, all at once or in rounds."""

    shuffled: int | None
    shuffle_delta: float | None
    reports: ClassVar[bool] = True
    # Who reports in which round, of those in two rounds.
    rounds: ClassVar[str] = ""
    refused: ClassVar[Mapping[str, str]] = {
        "relation": "promises local privacy of every report",
        "alpha": "has no privacy radius",
        "max_points_per_person": "lets a person send one report, about one point; name the column that tells persons, "
        "--user COLUMN",
    }

    @classmethod
    def objects(cls, options: ParsedOptions, domain: Domain) -> dict[str, Any]:
        """The window, where the mechanism is made for one."""
        window = require_window(
            domain,
            "local methods divide a window into cells; give --window or --window-file, or take --method laplace or "
            "lgcp along the streets",
        )
        return {"window": window} if "window" in {each.name for each in fields(cast(Any, cls))} else {}

    @classmethod
    def relation_from(cls, options: ParsedOptions) -> Relation:
        """The promise to the sender of a report, whatever the domain."""
        return Local(user=cls.user_column(options))

    @classmethod
    def require_size(cls, options: ParsedOptions, n: int | None, by: str | None) -> None:
        """Refuse marks, which a report at a level would tell; InputError."""
        if by is not None:
            msg = "by: local methods have one report for each person, and no marks; leave --by out"
            raise InputError(msg)

    @classmethod
    def require_columns(cls, options: ParsedOptions, columns: Iterable[str], name: str) -> None:
        """Refuse a file with a column that may tell persons, where nobody says whether it does; InputError."""
        require_told(columns, cls.user_column(options), name)

    def asked(self, domain: Any, n: int | None, after: str | None) -> Any:
        """Mechanism that clients report to: this one, or the round that follows the counts of the first one.

        Parameters
        ----------
        domain : Domain
        n : int or None
            Public number of persons of both rounds.
        after : str or None
            File of the first round's counts.

        Raises
        ------
        InputError
            Where there are no rounds and one is asked for, or n is missing.
        """
        if after is not None or n is not None:
            msg = f"{'n' if after is None else 'after'}: this mechanism has one round; leave --n and --after out"
            raise InputError(msg)
        return self

    def combined(self, domain: Any, n: int | None, after: str, counts: Any) -> Any:
        """Counts of both rounds together: of the file `after`, and of the second round's reports."""
        raise NotImplementedError

    def promise(self, asked: Any, domain: Domain, n: int | None) -> Guarantee:
        """Guarantee of the reports to `asked`; the most it may be where n is not known."""
        promised: Guarantee = self.ceiling(domain) if n is None else cast(Any, self.plan(domain, n=n)).guarantee
        return promised

    def reporters(self, asked: Any, user: str) -> str:
        """Sentence on the reports of persons told apart by a column."""
        return f"One report for each person of the column {user!r}, whatever points they have."

    def both_rounds(self) -> Guarantee | None:
        """Guarantee of both rounds together, where everybody reports in each; None otherwise."""
        return None

    def share(self, after: str | None) -> dict[str, str]:
        """Mark and value of the persons of one round, where rounds share persons out; nothing where all report."""
        return {}

    def require_drawn(self, domain: Domain, n: int | None, drawn: int) -> None:
        """Refuse more reports than persons, and fewer than a shuffler is said to mix; InputError."""
        if n is not None and drawn > n:
            msg = f"n: more persons report in this round than the {n} it says; give the public number of all of them"
            raise InputError(msg)
        self.plan(domain, n=n or drawn)
        shuffle = Shuffle.of(self.shuffled, self.shuffle_delta)
        if shuffle is not None:
            # A round may have fewer persons than its share of n.
            shuffle.require(n or drawn, drawn)
