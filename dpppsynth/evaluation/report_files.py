"""`UtilityReport`, its files and pictures: a folder readable by its owner alone, never in or around a release."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpppsynth.core.atomic_files import name_leftovers
from dpppsynth.core.errors import InputError
from dpppsynth.core.html_card import html_card
from dpppsynth.core.units import short_unit
from dpppsynth.evaluation.mark_scores import MarkScores
from dpppsynth.evaluation.metrics import LEAST_SHARE, METRICS, KComparison, averages
from dpppsynth.evaluation.report_tables import HeatScores, aligned, level_table
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.plotting import plot_comparison, refuse_release_folder, save_picture
from dpppsynth.plotting.canvas import LANDMARK, POINT, mark_confidential, new_figure
from dpppsynth.plotting.curves import label_curves
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

PREFIX = "CONFIDENTIAL_"
CONFIDENTIAL_LINE = (
    "CONFIDENTIAL: made from the sensitive points and not private. For the custodian's eyes alone, never for release."
)
PUBLIC_LINE = "Comparison with points that are stated not to be sensitive."


@dataclass(frozen=True, eq=False, repr=False)
class UtilityReport:
    """Synthetic patterns beside the original, made by `evaluate`; as confidential as the original.

    Attributes
    ----------
    original : PointPattern
    synthetic : tuple of PointPattern
    k : KComparison
        K-functions of the original and of the synthetic patterns, and the envelope of the latter.
    values : dict of str to ndarray, shape (m, 8)
        Values of the metrics, in the order of the table, one row a pattern: "synthetic", "uniform" and "resampled".
    side, bandwidth : float
        Side of the squares of the misplaced share and bandwidth of the kernel intensities, in the domain's unit.
    notes : tuple of str
        Remarks for readers of the table.
    confidential : bool
    heat : HeatScores or None
        Of a heat map release: four more rows, and none about the number of points, which is no aim of it.
    marks : MarkScores or None
        Of points with types and times: more rows, and tables `marks.types` and `marks.times` of shares.
    levels : dict of str to UtilityReport
        Of patterns by the levels of a public mark: a report on each level with two points or more.
    """

    original: PointPattern
    synthetic: tuple[PointPattern, ...]
    k: KComparison
    values: dict[str, Floats]
    side: float
    bandwidth: float
    notes: tuple[str, ...]
    confidential: bool
    heat: HeatScores | None = None
    marks: MarkScores | None = None
    levels: dict[str, UtilityReport] = field(default_factory=dict)

    @property
    def domain(self) -> Domain:
        """The public domain of all patterns."""
        return self.original.domain

    @property
    def table(self) -> pd.DataFrame:
        """One row per metric; columns original, synthetic (mean), sd, uniform, resampled (means), unit and better.

        "original" is what the original itself scores, which is no aim: publishing it would score best.
        """
        import pandas as pd

        metrics = [replace(each, unit=self.domain.unit) if each.unit == "length" else each for each in METRICS]
        found = averages([float(len(self.original))] + [0.0] * (len(metrics) - 1), self.values, metrics)
        if self.marks is not None:
            found = pd.concat([found, self.marks.table()])
        if self.heat is None:
            return found
        return pd.concat([self.heat.table(), found.drop(index=METRICS[0].name)])

    @property
    def level_table(self) -> pd.DataFrame:
        """One row per level: points, misplaced share and total variation, of synthetic patterns and yardsticks."""
        return level_table({level: report.table for level, report in self.levels.items()})

    def save(self, folder: str | Path) -> Path:
        """Write the report into a new or empty folder that only its owner can open, outside every release.

        Files: evaluation.json, summary.csv, k.csv, k.png and patterns.png, types.csv and times.csv where there are
        marks, and levels.csv where there are levels, each name begun by ``CONFIDENTIAL_``. Only patterns.png shows
        points. Folders above it that do not exist yet are made for the owner alone, too. What a killed process leaves
        behind is a hidden folder beside it, ``.NAME.report-*``, which the next save names.

        Raises
        ------
        InputError
            The folder is not empty, it belongs to a release, or it cannot be written.
        """
        if not isinstance(folder, str | Path):
            msg = f"folder: must be a path, got {folder!r}"
            raise InputError(msg)
        return save(self, Path(folder))

    def plot_k(self, ax: Axes | None = None) -> Axes:
        """Draw K of the original, the envelope of the synthetic patterns, and a Poisson process, the level line at 0.

        In a window L(r) - r is drawn, on a network K(r) - r: what is above zero gathers at scales up to r. A
        confidential figure is marked; `save_picture` keeps it out of releases and readable by its owner alone.
        """
        ax = new_figure(6.8, 5.0).subplots() if ax is None else ax
        r = self.k.original.r
        band = self.k.envelope
        if band is not None:
            between = band.lower - r, band.upper - r
            ax.fill_between(r, *between, color=LANDMARK, alpha=0.22, linewidth=0, label="synthetic, lowest to highest")
        mean, label = (self.k.synthetic[0].l, "synthetic") if band is None else (band.mean, "synthetic, mean")
        ax.plot(r, mean - r, color=LANDMARK, linewidth=1.6, label=label)
        ax.plot(
            r,
            self.k.original.l - r,
            color=POINT,
            linewidth=2.2,
            label="original (sensitive)" if self.confidential else "original",
        )
        streets = isinstance(self.domain, LinearNetwork)
        unit = short_unit(self.domain.unit)
        along = " along the streets" if streets else ""
        xlabel, ylabel = f"distance r{along} ({unit})", f"{'K' if streets else 'L'}(r) - r ({unit})"
        label_curves(ax, xlabel, ylabel, "How points gather, by distance")
        ax.set_xlim(0, r[-1])
        if self.confidential:
            mark_confidential(ax.figure, "made from sensitive points", size=48)
        return ax

    def plot_patterns(self, axes: Sequence[Axes] | None = None) -> tuple[Axes, Axes]:
        """Draw the original beside the first synthetic pattern; see `plotting.plot_comparison`."""
        return plot_comparison(self.original, self.synthetic[0], axes, confidential=self.confidential)

    def __str__(self) -> str:
        count, unit, farthest = len(self.synthetic), self.domain.unit, float(self.k.original.r[-1])
        compared = f"K up to {farthest:.4g}, L from {LEAST_SHARE * farthest:.4g} on"
        lines = [
            CONFIDENTIAL_LINE if self.confidential else PUBLIC_LINE,
            "",
            f"{count} synthetic pattern{'s' if count > 1 else ''} in {self.domain!r}",
            f"squares of {self.side:.4g}, bandwidth {self.bandwidth:.4g}, {compared} ({unit})",
            "",
            *aligned(self.table),
            "",
            *([*aligned(self.level_table), ""] if self.levels else []),
            *self.notes,
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        confidential = "CONFIDENTIAL: it compares with the original." if self.confidential else ""
        return html_card("UtilityReport", [("domain", repr(self.domain)), ("scores", "see .table")], text=confidential)

    def __repr__(self) -> str:
        return f"UtilityReport({'CONFIDENTIAL, ' if self.confidential else ''}{self.domain!r})"


def save(report: UtilityReport, folder: Path, argument: str = "folder") -> Path:
    """Write everything into a temporary folder beside `folder`, then rename it into place; see `UtilityReport.save`.

    `argument` is what errors call the folder.
    """
    require_private_folder(folder, argument)
    target = folder.resolve()
    try:
        _make(target.parent, private=report.confidential)
        prefix = f".{target.name}.report-"
        name_leftovers(target.parent, prefix, "it holds scores that compare with the original.")
        # The temporary folder is open to its owner alone, so nothing in it can be read before it is closed.
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=prefix) as scratch:
            work = Path(scratch) / "report"
            work.mkdir(mode=0o700 if report.confidential else 0o777)
            _write(report, work)
            if target.exists():
                target.rmdir()
            work.replace(target)
    except OSError as error:
        msg = f"{argument}: {folder} cannot be written ({error.strerror}); make room, or choose another place"
        raise InputError(msg) from None
    return folder


def require_private_folder(folder: Path, argument: str) -> None:
    """Refuse a folder for a report that is in use, in or above that of a release, or that cannot be made."""
    above = folder
    try:
        refuse_release_folder(folder, argument)
        # A folder that holds a release somewhere below is not empty.
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            msg = (
                f"{argument}: {folder} exists and is not an empty folder; choose a new one, away from every "
                "release: a report overwrites nothing"
            )
            raise InputError(msg)
        above = next(each for each in folder.resolve().parents if each.exists())
        tempfile.TemporaryDirectory(dir=above).cleanup()
    except OSError:
        msg = f"{argument}: no folder can be made in {above}; choose a place where you may write"
        raise InputError(msg) from None


def _make(folder: Path, *, private: bool) -> None:
    """Make a folder and those above it; `Path.mkdir` gives the mode to the last one alone."""
    for each in reversed((folder, *folder.parents)):
        if not each.exists():
            each.mkdir(mode=0o700 if private else 0o777, exist_ok=True)


def _write(report: UtilityReport, work: Path) -> None:
    start, mode = (PREFIX, 0o600) if report.confidential else ("", 0o666)
    document = json.dumps(contents(report), indent=2, allow_nan=False) + "\n"
    texts = {"evaluation.json": document, "summary.csv": report.table.to_csv(), "k.csv": _k_csv(report)}
    for name in ("types", "times"):
        shares = getattr(report.marks, name, None)
        if shares is not None:
            texts[f"{name}.csv"] = shares.to_csv()
    if report.levels:
        texts["levels.csv"] = report.level_table.to_csv()
    for name, text in texts.items():
        handle = os.open(work / (start + name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
    save_picture(report.plot_k(), work / f"{start}k.png")
    save_picture(report.plot_patterns(), work / f"{start}patterns.png")


def contents(report: UtilityReport) -> dict[str, Any]:
    """Metrics, their values pattern by pattern, and settings, as JSON can hold them; no coordinate."""
    rows = report.table.reset_index().to_dict("records")
    scores = {each.name: column.tolist() for each, column in zip(METRICS, report.values["synthetic"].T, strict=True)}
    # A heat map is one of the release, not of its patterns.
    rows = [row | ({"patterns": scores[row["metric"]]} if row["metric"] in scores else {}) for row in rows]
    domain, distances = report.domain, report.k.original.r
    return {
        "confidential": report.confidential,
        "domain": {"fingerprint": domain.fingerprint(), "crs": domain.crs, "unit": domain.unit},
        "side": report.side,
        "bandwidth": report.bandwidth,
        "r": {"from": float(distances[0]), "to": float(distances[-1]), "values": len(distances)},
        "correction": report.k.original.correction,
        "notes": list(report.notes),
        "metrics": [{key: _plain(value) for key, value in row.items()} for row in rows],
    } | (
        {"levels": {level: contents(each)["metrics"] for level, each in report.levels.items()}} if report.levels else {}
    )


def _plain(value: Any) -> Any:
    """JSON form of a number, None for NaN."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _k_csv(report: UtilityReport) -> str:
    """Distances, K of a Poisson process where it is known, of the original, and of each synthetic pattern."""
    import pandas as pd

    k = report.k
    columns = {"r": k.original.r, "poisson": k.original.theory, "original": k.original.k}
    columns |= {f"synthetic_{i:03d}": each.k for i, each in enumerate(k.synthetic)}
    return str(pd.DataFrame({name: each for name, each in columns.items() if each is not None}).to_csv(index=False))
