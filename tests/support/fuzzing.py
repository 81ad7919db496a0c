"""Settings of fuzzers, and a recorder of all that is said."""

import contextlib
import io
import logging
import os
import secrets
import shutil
import string
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings

LOOKS = int(os.environ.get("DPPPSYNTH_FUZZ", "0"))
fuzz = settings(
    max_examples=LOOKS or 8,
    derandomize=not LOOKS,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


class Everything(logging.Handler):
    """Text of every record, with what the logger was given beside the message."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.name} {record.getMessage()} {record.exc_info or ''}")


@contextlib.contextmanager
def listening(said: list[str]) -> Iterator[None]:
    """Collect records, warnings and output; a warning from a library is a fault of the reader that let it through."""
    handler, root = Everything(), logging.getLogger()
    loggers = [root, *(logger for logger in root.manager.loggerDict.values() if isinstance(logger, logging.Logger))]
    levels = [logger.level for logger in loggers]
    root.addHandler(handler)
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
    out, err = io.StringIO(), io.StringIO()
    try:
        with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(out):
            warnings.simplefilter("always")
            with contextlib.redirect_stderr(err):
                yield
    finally:
        root.removeHandler(handler)
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        said += [*handler.lines, out.getvalue(), err.getvalue(), *(str(w.message) for w in warned)]
    assert not warned, [str(w.message) for w in warned]


@contextlib.contextmanager
def scratch() -> Iterator[str]:
    """A temporary folder whose name has no digit: secret numbers are looked for in all that is said, paths included."""
    folder = Path(tempfile.gettempdir()) / "".join(secrets.choice(string.ascii_lowercase) for _ in range(16))
    folder.mkdir(mode=0o700)
    try:
        yield str(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
