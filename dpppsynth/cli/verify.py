"""`dpppsynth verify`: verification of a certificate, without the data."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dpppsynth.cli import common_options as o
from dpppsynth.cli.console import show_checks, show_json, show_line, show_promise, show_text
from dpppsynth.cli.next_command import after_verify

# The sentence that is said of every certificate that holds.
NOT_SHOWN = (
    "Shown is that the promise follows from what is stated, and that nothing was edited since. Not shown is who stated "
    "it, and whether n, units and names of types are true: somebody who rewrites them and makes the hashes anew passes "
    "this check. A signature shows the origin."
)


def verify(
    path: Annotated[Path, typer.Argument(help="certificate.json, or the folder that holds it.", show_default=False)],
    no_limit: o.NoLimitOption = False,
    verbose: o.VerboseOption = False,
    json: o.JsonOption = False,
) -> None:
    """Derive the bound again from the certificate, and check its hash and the files beside it.

    Only plain files are opened, without following links, and no more than a minute is taken unasked.

    Exit code 0: it holds; 2: there is no readable certificate, or it is too large to verify; 3: it does not hold.
    """
    from dpppsynth.privacy.interpretation import moved_within
    from dpppsynth.release.verify import verify as examine

    result = examine(path, limit=not no_limit)
    if json:
        checks = [check.to_dict() for check in result.checks]
        outcome = {"holds": result.holds, "not_shown": NOT_SHOWN}
        second: dict[str, Any] = {} if result.shuffled is None else {"shuffled": result.shuffled.to_dict()}
        second |= {} if result.snap is None else {"snap": result.snap}
        show_json(outcome | {"checks": checks, "guarantee": result.guarantee.to_dict()} | second)
    else:
        show_checks((check.name, check.holds, check.detail) for check in result.checks)
        show_text("")
        if result.holds and result.domain is not None:
            show_promise(result.guarantee, result.domain, verbose=verbose, start="The certificate holds. ")
            if result.shuffled is not None:
                show_text(f"\n{result.shuffled}")
            if result.snap is not None:
                show_text(f"\n{moved_within(result.snap, result.domain)}")
            show_text(f"\n{NOT_SHOWN}")
            for command in after_verify(path, limit=not no_limit):
                show_line(f"Look at it: {command}")
        else:
            show_text("The certificate does NOT hold: do not rely on this release.")
    if not result.holds:
        raise typer.Exit(3)
