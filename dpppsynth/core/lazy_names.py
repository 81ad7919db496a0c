"""Public names of a package or module, loaded when first used from the places that its stub lists."""

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path


def lazy_names(package: str, file: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package or module.

    Parameters
    ----------
    package : str
        Its `__name__`.
    file : str
        Its `__file__`; the stub stands beside it.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    places = {alias.name: str(node.module) for node in imports for alias in node.names}
    names = sorted(places)

    def load(name: str) -> object:
        if name not in names:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        place = import_module(places[name])
        return getattr(place, name) if hasattr(place, name) else import_module(f"{places[name]}.{name}")

    return load, lambda: names, names
