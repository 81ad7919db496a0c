"""Privacy budget ledgers: the spending of one data set over time, in a file.

`Ledger.create` sets the budget, `authorise` spends part of it before the data are touched, `record` notes what was
published. `document` is the file, `history` what its events amount to, `budget` what they spend, `counted_points`
which points they read and which of their numbers exclude each other, `joint_guarantee` what they promise,
`authorisation` who may settle and record, `opening` how one is opened for persons, `certificates` what a certificate
proves to have been paid for, and whether a published one belongs to a ledger.
"""

from dpppsynth.ledger.authorisation import Authorisation
from dpppsynth.ledger.comparison import compare
from dpppsynth.ledger.history import Entry
from dpppsynth.ledger.ledger import Ledger

__all__ = ["Authorisation", "Entry", "Ledger", "compare"]
