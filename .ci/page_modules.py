"""Write the modules that docs/adding_a_mechanism.md shows into a folder, for the linter.

python .ci/page_modules.py FOLDER
"""

import re
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs/adding_a_mechanism.md"


def main(folder: Path) -> None:
    """One file for each block that begins with the path of a module in the folder of a mechanism."""
    blocks = re.findall(
        r"^```python\n# dpppsynth/mechanisms/(\S+)\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    if not blocks:
        sys.exit(f"{PAGE} shows no module")
    for name, text in blocks:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
