"""Ledgers: the privacy budget of one data set over time, in a file.

`Ledger.create` sets the budget, `authorise` spends part of it before the data are touched, `record` notes what was
published. `document` is the file, `history` what its events amount to, `budget` what they spend, `compare` tells
whether a published certificate belongs to a ledger.
"""

from dpppsynth.ledger.history import Entry
from dpppsynth.ledger.ledger import Ledger
from dpppsynth.ledger.published import compare

__all__ = ["Entry", "Ledger", "compare"]
