"""The command line as tests call it."""

import re

from typer.testing import CliRunner

from dpppsynth import cli


def run(*words, code=0, **settings):
    """The result of a command, which must end with this exit code unless it is None."""
    result = CliRunner().invoke(cli.app, [str(word) for word in words], **settings)
    assert code is None or result.exit_code == code, (result.output, result.exception)
    return result


def spoken(result):
    """All that was said, in one line: boxes and wrapping removed."""
    return re.sub(r"[\s│╭╮╰╯─]+", " ", result.output)
