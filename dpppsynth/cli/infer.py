"""`dpppsynth infer`: inference again from the private statistic of a saved release, at no privacy cost."""

from pathlib import Path
from typing import Annotated, Any

from dpppsynth.cli import common_options as o
from dpppsynth.cli.console import progress, show_json, show_line
from dpppsynth.cli.sample import SeedOption, require_intensities
from dpppsynth.core.errors import InputError
from dpppsynth.core.output_folder import require_new_folder

InferenceOption = Annotated[o.Inference, o.option("NUTS, or a Laplace approximation.", o.HOW)]
OutOption = Annotated[Path, o.option("New folder for the release with its new posterior.", o.WRITING)]


def infer(
    release: o.ReleaseArgument,
    inference: InferenceOption,
    out: OutOption,
    engine: o.EngineOption = None,
    patterns: o.WrittenPatternsOption = 1,
    fixed_n: o.FixedNOption = False,
    source: o.SourceOption = o.Source.RELEASED,
    seed: SeedOption = None,
    no_limit: o.NoLimitOption = False,
    json: o.JsonOption = False,
) -> None:
    """Infer again from what a saved release has measured, and write it with its new posterior; free.

    The private statistic and the promise stay as they are.
    """
    if engine is not None and inference is not o.Inference.NUTS:
        msg = "engine: goes with --inference nuts; leave it out"
        raise InputError(msg)
    require_new_folder(out, "out")

    from dpppsynth.release import load_release
    from dpppsynth.release.folder import release_folder

    folder = release_folder(release)
    with progress() as say:
        say("opening the release")
        opened: Any = load_release(release, limit=not no_limit)
        require_intensities(opened, folder, fixed_n=fixed_n)
        _require_posterior(opened)
        changes = {"inference": str(inference)} | ({} if engine is None else {"engine": str(engine)})
        made = opened.infer(seed, progress=say, **changes)
        say("drawing and writing what is released")
        made.save(out, patterns=patterns, rng=seed, source=str(source), fixed_n=fixed_n, progress=say)
    fits = {level: part.fit._asdict() for level, part in made.parts.items()}
    files = sorted(path.name for path in out.iterdir())
    if json:
        show_json({"out": str(out), "files": files, "inference": str(inference), "spent": 0.0, "fits": fits})
        return
    show_line(
        f"Inferred again ({inference}) from the private statistic of {folder}, which is unchanged; nothing was spent"
    )
    for level, fit in fits.items():
        known = ", ".join(f"{name} {value:.4g}" for name, value in fit.items() if value is not None)
        show_line(f"Diagnostics{' of ' * bool(level)}{level}: {known}")
    show_line(f"Written to {out}: {', '.join(files)}")


def _require_posterior(release: Any) -> None:
    first = next(iter(release.parts.values()))
    if not first.estimator.has_posterior:
        msg = f"inference: a {first.mechanism} release has no posterior; there is nothing to infer"
        raise InputError(msg)
