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
    # Names that are public under another one stand as `public = own`.
    own = {ast.unparse(node.targets[0]): ast.unparse(node.value) for node in stub.body if isinstance(node, ast.Assign)}
    names = sorted(places.keys() - own.values() | own.keys())

    def load(name: str) -> object:
        if name not in names:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        found = own.get(name, name)
        place = import_module(places[found])
        return getattr(place, found) if hasattr(place, found) else import_module(f"{places[found]}.{found}")

    return load, lambda: names, names
