"""`dpppsynth resume`: completion of a release whose run was stopped after it was paid for."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from dpppsynth.cli import common_options as o
from dpppsynth.cli.console import progress, show_json, show_line
from dpppsynth.core.errors import DpppsynthError, InputError, QualityError

AgainOption = Annotated[o.Inference | None, o.option("Way of inference, where the usual one failed.", o.HOW)]


def resume(
    release: o.ReleaseArgument,
    patterns: o.WrittenPatternsOption = 1,
    draws: o.DrawsOption = 0,
    fixed_n: o.FixedNOption = False,
    source: o.SourceOption = o.Source.RELEASED,
    inference: AgainOption = None,
    no_limit: o.NoLimitOption = False,
    json: o.JsonOption = False,
) -> None:
    """Complete a release whose run was stopped after it was paid for: infer, draw patterns, write them; free.

    What `synthesize` has measured is in its output folder before anything is inferred from it.
    """
    from dpppsynth.release import load_release
    from dpppsynth.release.folder import release_folder
    from dpppsynth.release.folder_writing import is_kept

    folder = release_folder(release)
    with progress() as say:
        say("opening what was paid for")
        opened: Any = load_release(release, limit=not no_limit)
        if not is_kept(opened, folder) or not hasattr(opened, "infer"):
            msg = f"release: {folder} is complete; where patterns are free, dpppsynth sample {folder} draws more"
            raise InputError(msg)
        if inference is not None:
            opened = opened.infer(progress=say, inference=str(inference))
        else:
            opened = opened.finish(None, say)
        say("drawing and writing what is released")
        kinds = {"patterns": patterns, "draws": draws, "source": str(source)}
        opened.save(folder, **kinds, fixed_n=fixed_n, progress=say)
    files = sorted(path.name for path in folder.iterdir())
    if json:
        show_json({"out": str(folder), "files": files})
    else:
        show_line(f"Written to {folder}: {', '.join(files)}")


@contextmanager
def nothing_lost(out: Path, entry: str | None) -> Iterator[None]:
    """Add to any later error where the paid files are and how to resume."""
    try:
        yield
    except (
        DpppsynthError,
        OSError,
        MemoryError,
        ArithmeticError,
        ValueError,
        RuntimeError,
        KeyboardInterrupt,
    ) as error:
        kept = _kept(out, entry)
        if kept is None:
            raise
        known = isinstance(error, DpppsynthError)
        reason = str(error).partition(". ")[0].rstrip(".") if known else f"The run was stopped ({type(error).__name__})"
        again = " --inference laplace" if isinstance(error, QualityError) else ""
        msg = (
            f"{reason}. Nothing is lost: the budget is spent, and what it bought is in {kept}. Complete it, at no "
            f"privacy cost: dpppsynth resume {kept}{again}"
        )
        raise QualityError(msg) from None


def _kept(out: Path, entry: str | None) -> Path | None:
    """The folder, of this name or with a number behind it, that holds the release of an entry."""
    from dpppsynth.release import certificate

    for folder in (out, *sorted(out.parent.glob(f"{out.name}-*"))):
        if (folder / certificate.FILENAME).is_file() and certificate.read(folder).get("ledger") == entry:
            return folder
    return None
