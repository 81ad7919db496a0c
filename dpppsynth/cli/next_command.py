"""Commands to run next, ready to paste into a shell."""

import shlex
from collections.abc import Iterable
from contextvars import ContextVar
from pathlib import Path

# Words of the command line, the command's name first.
WORDS: ContextVar[tuple[str, ...]] = ContextVar("WORDS", default=())
# Options of `check` that `synthesize` has not, or need not have, and whether they take a value.
OF_CHECK = {"--population": True, "--population-column": True, "--verbose": False, "--json": False}


def given_words() -> list[str]:
    """Words of the command line behind the command's name."""
    return list(WORDS.get()[1:])


def after_check(words: Iterable[str]) -> str:
    """The release that was checked with these words, of a file that is named there.

    Examples
    --------
    >>> after_check(["--method", "laplace", "--population", "a.csv", "--window-file", "my city.geojson", "--json"])
    "dpppsynth synthesize points.csv --method laplace --window-file 'my city.geojson' --out public"
    """
    kept: list[str] = []
    words = list(words)
    remaining = iter(words)
    for word in remaining:
        name, given, _ = word.partition("=")
        if name not in OF_CHECK:
            kept.append(word)
        elif OF_CHECK[name] and not given:
            next(remaining, None)
    out = [] if any(word.partition("=")[0] == "--out" for word in words) else ["--out", "public"]
    return shlex.join(["dpppsynth", "synthesize", "points.csv", *kept, *out])


def after_verify(path: Path, *, limit: bool) -> list[str]:
    """Commands that show a verified release; none of a certificate that stands alone.

    Examples
    --------
    >>> after_verify(Path("nowhere/certificate.json"), limit=True)
    []
    """
    folder = path if path.is_dir() else path.parent
    if not any(folder.glob("synthetic_*")):
        return []
    pictures = ["plot", str(folder), "--out", _beside(folder, "pictures")]
    return [_command(pictures, limit=limit), _command(["report", str(folder)], limit=limit)]


def after_plot(path: Path, *, intensity: bool, limit: bool) -> list[str]:
    """Commands that explain a release, and take it to other programs, with its `intensity` where it has one.

    Examples
    --------
    >>> after_plot(Path("my area"), intensity=True, limit=False)[0]
    "dpppsynth report 'my area' --no-limit"
    """
    folder = path if path.is_dir() or not path.suffix else path.parent
    return [_command(["report", str(folder)], limit=limit), *after_report(folder, intensity=intensity, limit=limit)]


def after_report(path: Path, *, limit: bool, intensity: bool = False) -> list[str]:
    """The command that takes a release to other programs; none where it has nothing for them."""
    folder = path if path.is_dir() or not path.suffix else path.parent
    formats = ["--format", "gpkg"] if any(folder.glob("synthetic_*")) else []
    formats += ["--intensity", "gpkg"] if intensity else []
    words = ["export", str(folder), "--out", _beside(folder, "export"), *formats]
    return [_command(words, limit=limit)] if formats else []


def _beside(folder: Path, what: str) -> str:
    """A folder beside a release, called after it."""
    return str(folder.with_name(f"{folder.name or 'release'}_{what}"))


def _command(words: Iterable[str], *, limit: bool) -> str:
    return shlex.join(["dpppsynth", *words, *([] if limit else ["--no-limit"])])
