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
    own = [] if limit else ["--no-limit"]
    pictures = folder.with_name(f"{folder.name or 'release'}_pictures")
    words = (["plot", str(folder), "--out", str(pictures)], ["report", str(folder)])
    return [shlex.join(["dpppsynth", *each, *own]) for each in words]
