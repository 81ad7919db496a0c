"""Authorisations: the secret that settles and records a ledger entry, and the hash chain that verifies it.

The file holds the secret hashed three times. Settling shows the secret hashed twice, recording the secret hashed once:
both can be checked by everybody who reads the file. The secret itself is never written, and nothing else is taken for
it: not even what a recording has left that came to nothing.
"""

import hashlib
import secrets
from typing import Any, Self

from dpppsynth.core.errors import InputError

HELD = (
    "entry: an authorisation is used by whoever was given it; pass on what ledger.authorise returned, to another "
    "process as Authorisation(entry, token)."
)


class Authorisation(str):
    """Result of `Ledger.authorise`: the name of an entry, and the secret that settles and records it.

    The text is the name alone. To use it in another process, hand over both parts.

    Attributes
    ----------
    token : str
        64 hexadecimal digits from the operating system; whoever has them may take the authorisation up.

    Examples
    --------
    >>> Authorisation("ab12", "0" * 64)
    'ab12'
    """

    __slots__ = ("token",)
    token: str

    def __new__(cls, name: str, token: str) -> Self:
        """Name and secret together."""
        made = super().__new__(cls, name)
        made.token = token
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        """Both parts, for copies."""
        return str(self), self.token


def new_token() -> str:
    """A random secret that cannot be guessed."""
    return secrets.token_hex(32)


def token_hash(token: str) -> str:
    """SHA-256 of a secret, or of its hash."""
    return hashlib.sha256(token.encode()).hexdigest()


def recording(token: str) -> str:
    """Hash of the secret that proves the right to record."""
    return token_hash(token)


def settling(token: str) -> str:
    """Hash of the secret that proves the right to settle."""
    return token_hash(recording(token))


def claim(token: str) -> str:
    """Hash of the secret that an authorisation's event holds."""
    return token_hash(settling(token))


def token_of(entry: Any, held: str | None) -> str | None:
    """The secret that comes with an entry's name, if it is the one whose `claim` the ledger holds."""
    token = getattr(entry, "token", None)
    return token if isinstance(token, str) and held is not None and claim(token) == held else None


def require_token(entry: Any, held: str | None) -> str:
    """Return the secret as `token_of` does; InputError for those who were not given it."""
    token = token_of(entry, held)
    if token is None:
        older = "" if held else " This one was given by an older version, which kept no proof of it: authorise another."
        raise InputError(HELD + older)
    return token
