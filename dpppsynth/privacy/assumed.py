"""Assumptions of guarantees, as sentences, that several mechanisms make or that a ledger looks for."""

AVERAGED = (
    "The pattern was itself drawn from the fitted model: delta is a probability over such patterns, so the promise is "
    "model-averaged and not one for the pattern at hand."
)
ONE_REPORT = (
    "Every person sends one report, drawn with the stated weights from secret bits, and it is never drawn again."
)
TWO_ROUNDS = (
    "A person reports at most once in either round, from secret bits, and no report is ever drawn again; what was "
    "announced between the rounds followed from the first one's reports alone."
)
SEED = "The draw uses secret randomness of the operating system."
REALS = "Floating-point arithmetic stands for real numbers."
