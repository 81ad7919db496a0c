"""Time that an authorisation takes in a ledger of many entries, alone and in sixteen processes at once.

Each entry was authorised, settled and measured, with one of four guarantees. Every time is that of
`Ledger.open(path).authorise(...)` in a process that has opened no ledger before: the best of five processes.

    python benchmarks/ledger_speed.py --out docs/results/scale.md
"""

import os
import tempfile
import time
from pathlib import Path

from pages import command_line, fill, table

from dpppsynth.core.errors import DpppsynthError
from dpppsynth.ledger import Ledger
from dpppsynth.ledger.authorisation import proof_of
from dpppsynth.ledger.document import dump, identify, parse
from dpppsynth.ledger.history import place_of, stored
from dpppsynth.privacy import AlphaNeighbours, GaussianDP, Guarantee, PoissonGaussianDP, Profile, PureDP
from dpppsynth.spatial.domains import Window

SQUARE, ALPHA = Window.rectangle(0, 0, 1000, 1000), AlphaNeighbours(25.0)
ENTRIES, PROCESSES, TRIALS = (5, 150, 2000), 16, 5
KINDS: dict[str, list[Profile]] = {
    "Gaussian": [GaussianDP(0.01 * k, at=1e-6) for k in (1, 2, 3, 4)],
    "pure": [PureDP(0.002 * k) for k in (1, 2, 3, 4)],
    "mixed": [GaussianDP(0.01, at=1e-6), PureDP(0.002), PoissonGaussianDP(0.01, 1.0, 1e-6), PureDP(0.004)],
}


def promise(profile: Profile) -> Guarantee:
    """Guarantee with a profile."""
    return Guarantee(ALPHA, profile, "posterior-draw", ("exact-draw",))


def make(path: Path, profiles: list[Profile], entries: int) -> None:
    """Write a ledger with a number of entries."""
    Ledger.create(path, epsilon=1e4, delta=1e-5, relation=ALPHA)
    events = [event for _, event in parse(path.read_bytes(), path)]
    guarantees = [stored(promise(profile)) for profile in profiles]

    def add(**event: object) -> str:
        events.append({"previous": add.head, **event})
        add.head = identify(events[-1])
        return add.head

    add.head = identify(events[0])
    for k in range(entries):
        token, points = f"{k:064x}", {"n": 100, "count_unit": None, "subset": None, "levels": None}
        same = {"mechanism": "lgcp-posterior-draw", "guarantee": guarantees[k % len(guarantees)]}
        claimed = {"claim": proof_of(token, "authorised"), "taken": False, "domain": place_of(SQUARE)}
        when = {"nonce": f"{k:032x}", "at": "2026-01-01T00:00:00Z"}
        entry = add(kind="authorised", **when, **same, **claimed, points=points | {"n": None})
        add(kind="settled", entry=entry, proof=proof_of(token, "settled"), **same, points=points)
        hashes = {"certificate": f"{k:064x}", "paid": f"{k:064x}"}
        later = {"entry": entry, "proof": proof_of(token, "measured"), "points": points}
        add(kind="measured", **later, **hashes, counts="settled", kept=None)
    with path.open("wb") as file:
        file.write(dump(events))
        os.fsync(file.fileno())


def authorise(path: Path, profile: Profile) -> None:
    """Work that is timed."""
    Ledger.open(path).authorise(promise(profile), mechanism="lgcp-posterior-draw", domain=SQUARE, n=100)


def timed(path: Path, profile: Profile, processes: int) -> list[float]:
    """Seconds of each of some processes that start at once; infinite for one that was refused."""
    reader, writer = os.pipe()
    for _ in range(processes):
        if os.fork() == 0:
            start = time.perf_counter()
            try:
                authorise(path, profile)
                taken = time.perf_counter() - start
            except DpppsynthError:
                taken = float("inf")
            os.write(writer, f"{taken}\n".encode())
            os._exit(0)
    os.close(writer)
    for _ in range(processes):
        os.wait()
    with os.fdopen(reader) as found:
        return [float(line) for line in found]


def warm_up(folder: Path) -> None:
    """Import all that a process imports once, however long its ledger is."""
    for name, profiles in KINDS.items():
        make(folder / f"warm-{name}.json", profiles, 4)
        authorise(folder / f"warm-{name}.json", profiles[0])


def main() -> None:
    """Measure, and write the table."""
    options = command_line(__doc__).parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        warm_up(folder)
        for kind, profiles in KINDS.items():
            cells = []
            for entries in ENTRIES:
                path = folder / f"{kind}-{entries}.json"
                make(path, profiles, entries)
                cells.append(f"{min(timed(path, profiles[0], 1)[0] for _ in range(TRIALS)):.3f} s")
            together = timed(path, profiles[0], PROCESSES)
            refused = sum(each == float("inf") for each in together)
            rows.append([kind, *cells, f"{max(together):.1f} s, {refused} refused"])
            print(rows[-1], flush=True)
    heads = ["guarantees", *(f"{entries} entries" for entries in ENTRIES), f"{PROCESSES} processes at once, the last"]
    fill(options.out, "ledger_speed", table(heads, rows))


if __name__ == "__main__":
    main()
