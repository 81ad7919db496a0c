"""Releases of Soho in R: the lines of docs/into_r.md, run under Rscript where it is at hand.

Run it with `python examples/into_r.py [folder]`; it makes two releases in the folder (out/into_r unless given), one in
a window and one on the streets, exports them as the page says, and runs the page's R. The R packages sf and spatstat
are needed; without R it stops after the files.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import dpppsynth as dps

PAGE = Path(__file__).parents[1] / "docs" / "into_r.md"


def lines_of_r() -> str:
    """The page's R, whose paths are those of the files that `make_files` writes."""
    return "\n".join(re.findall(r"^```r\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE))


def make_files(folder: Path) -> None:
    """Two releases, and their files for R."""
    for name, deaths in {"area": dps.datasets.soho_deaths(), "streets": dps.datasets.soho_deaths(on="streets")}.items():
        dps.LaplaceSynthesizer(1.0, alpha=25.0).release(deaths).save(folder / name, patterns=1)
        files = ["--format", "gpkg", "--intensity", "csv" if name == "area" else "gpkg", "--spacing", "20"]
        words = [sys.executable, "-m", "dpppsynth", "export", folder / name, "--out", folder / f"{name}_for_r", *files]
        subprocess.run(words, check=True)  # noqa: S603


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/into_r")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    make_files(folder)
    (folder / "into_r.R").write_text(lines_of_r(), encoding="utf-8")
    program = shutil.which("Rscript")
    if program is None:
        print(f"Rscript is not at hand: {folder / 'into_r.R'} was not run")
        return
    done = subprocess.run([program, "into_r.R"], cwd=folder, check=False)  # noqa: S603
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
