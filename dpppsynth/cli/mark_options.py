"""Options of types and times for commands that no mechanism is named to."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from dpppsynth.cli import common_options as o
from dpppsynth.contract.mark_settings import DESCRIBED, PERIODS, described_marks
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import add_options

if TYPE_CHECKING:
    from dpppsynth.spatial.mark_space import Marks

HELP = {each.name: f"{each.help}." for each in DESCRIBED}
SHOWN = {each.name: each.metavar for each in DESCRIBED}


def _option(name: str) -> Any:
    return Option(help=HELP[name], metavar=SHOWN[name], rich_help_panel=o.READING)


@dataclass(frozen=True, kw_only=True)
class MarkOptions:
    """Columns of types and times, and what they may hold."""

    types: Annotated[str | None, _option("types")] = None
    type_bins: Annotated[str | None, _option("type_bins")] = None
    time: Annotated[str | None, _option("time")] = None
    period: Annotated[str | None, _option("period")] = None
    time_range: Annotated[str | None, _option("time_range")] = None
    time_zone: Annotated[str | None, _option("time_zone")] = None

    def __post_init__(self) -> None:
        if self.period is not None and self.period not in PERIODS:
            msg = f"period: needs one of {', '.join(PERIODS)}, got {self.period!r}"
            raise InputError(msg)

    def described(self) -> "Marks | None":
        """Types and times; None where there are neither."""
        add_options({name: each.option for each in DESCRIBED for name in (each.argument, each.name) if name})
        return described_marks(asdict(self) | {"hats": None})
