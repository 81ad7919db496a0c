"""The command line: one module per command, from `dpppsynth recommend` to `inspect`.

Exit codes: 0; 2 bad input; 3 the guarantee does not hold; 4 the budget does not suffice; 5 a
release was blocked, or inference failed its diagnostics. Everything heavy is imported inside the commands.
"""

from dpppsynth.cli.program import app, main

__all__ = ["app", "main"]
