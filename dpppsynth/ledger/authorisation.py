"""Authorisations: the secret that settles and records a ledger entry, and the hashes that prove it.

The file holds the secret hashed three times. Settling shows the secret hashed twice, recording the secret hashed once:
both can be checked by everybody who reads the file. The secret itself is never written, and nothing else is taken for
it, not even what a failed recording left behind.
"""

import hashlib
from typing import Any, Self

from dpppsynth.core.errors import InputError
from dpppsynth.ledger.document import AUTHORISED, GIVEN_UP, MEASURED, SETTLED

# Number of times that the secret is hashed in an event.
TIMES = {AUTHORISED: 3, SETTLED: 2, GIVEN_UP: 2, MEASURED: 1}


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


def hashed(text: str, times: int = 1) -> str:
    """Iterated SHA-256 of a text."""
    for _ in range(times):
        text = hashlib.sha256(text.encode()).hexdigest()
    return text


def proof_of(token: str, kind: str) -> str:
    """Hash of the secret that an event of a kind must contain."""
    return hashed(token, TIMES[kind])


def require_proof(proof: str, kind: str, claim: str) -> None:
    """Refuse an event unless its proof leads to the hash that the authorisation holds."""
    if hashed(proof, TIMES[AUTHORISED] - TIMES[kind]) != claim:
        msg = f"entry: a release is {kind} by somebody who was not given its authorisation."
        raise InputError(msg)


def require_token(entry: Any, claim: str) -> str:
    """The secret that comes with an entry's name; InputError unless it is the one that the ledger knows by its hash."""
    token = getattr(entry, "token", None)
    if not isinstance(token, str) or proof_of(token, AUTHORISED) != claim:
        msg = (
            "entry: an authorisation is used by whoever was given it; pass on what ledger.authorise returned, to "
            "another process as Authorisation(entry, token)."
        )
        raise InputError(msg)
    return token
