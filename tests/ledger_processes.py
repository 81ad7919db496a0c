"""Processes that share a ledger and are killed; prints what was found as JSON. Started by test_ledger.py.

One process forks all others, so that the package is imported once.
"""

import json
import os
import random
import signal
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from dpppsynth.core import atomic_files as durable
from dpppsynth.core.errors import BudgetError, InputError
from dpppsynth.ledger import Ledger
from dpppsynth.ledger import ledger as module
from dpppsynth.privacy import AlphaNeighbours, GaussianDP, Guarantee, ReplaceOne
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import LaplaceSynthesizer

ALPHA = AlphaNeighbours(25.0)
SQUARE = Window.rectangle(0, 0, 1000, 1000)
DRAW = Guarantee(ALPHA, GaussianDP(0.1, at=1e-6), "posterior-draw", ("exact-draw",))
ROOM = 7
WRITES = ((module, "_append_line"), (module, "_write_durably"))


def authorise(ledger):
    return ledger.authorise(DRAW, mechanism="lgcp-posterior-draw", domain=SQUARE)


def fork(work):
    """Run `work` in a child that ends with exit code 0, or however the work ends it."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return child


def signal_of(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def between(folder):
    """Killed after an authorisation, before the release."""
    ledger = Ledger.create(folder / "between.json", epsilon=2.0, delta=1e-5, relation=ALPHA)

    def work():
        authorise(Ledger.open(ledger.path))
        os.kill(os.getpid(), signal.SIGKILL)

    ended = signal_of(fork(work))
    spent = ledger.spent
    authorise(ledger)
    return {"ended": ended, "states": [entry.state for entry in ledger.releases], "spent": [spent, ledger.spent]}


def deadly(step):
    """Kill this process before or after the n-th thing that it asks of the file system."""
    asked = 0

    def count():
        nonlocal asked
        asked += 1
        if asked == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(function):
        def call(*args, **options):
            count()
            result = function(*args, **options)
            count()
            return result

        return call

    for owner, name in (
        (os, "open"),
        (os, "fsync"),
        (Path, "replace"),
        (Path, "unlink"),
        (durable.os, "fdopen"),
        *WRITES,
    ):
        setattr(owner, name, around(getattr(owner, name)))


def steps(folder):
    """Killed at every step of a write: (number of releases found, whether the child ended by itself)."""
    ledger, found = Ledger.create(folder / "steps.json", epsilon=100.0, delta=1e-5, relation=ALPHA), []
    for step in range(1, 100):

        def work(step=step):
            deadly(step)
            authorise(Ledger.open(ledger.path))

        before, ended = len(ledger.releases), signal_of(fork(work))
        found.append([len(ledger.releases) - before, ended])
        if ended == 0:
            break
    return found


def moments(folder):
    """Killed at random times while it writes: (releases it knew of, releases found)."""
    ledger, found = Ledger.create(folder / "moments.json", epsilon=100.0, delta=1e-5, relation=ALPHA), []
    chance = random.Random(5)
    for _ in range(8):
        before = len(ledger.releases)
        reader, writer = os.pipe()

        def work(writer=writer):
            mine = Ledger.open(ledger.path)
            while True:
                authorise(mine)
                os.write(writer, b".")

        child = fork(work)
        os.close(writer)
        os.read(reader, 1)
        time.sleep(chance.uniform(0, 0.06))
        os.kill(child, signal.SIGKILL)
        signal_of(child)
        known = 1
        while more := os.read(reader, 1000):
            known += len(more)
        os.close(reader)
        found.append([known, len(ledger.releases) - before])
    return found


def race(folder):
    """Two processes that ask 20 times each for one of `ROOM` places: (places each got, entries found)."""
    epsilon = GaussianDP(0.1 * ROOM**0.5 * 1.001, at=1e-5).epsilon(1e-5)
    ledger = Ledger.create(folder / "race.json", epsilon=epsilon, delta=1e-5, relation=ALPHA)
    start, go = os.pipe()
    children = []
    for k in range(2):

        def work(k=k):
            got = 0
            os.close(go)
            os.read(start, 1)
            for _ in range(20):
                try:
                    authorise(Ledger.open(ledger.path))
                    got += 1
                except BudgetError:
                    pass
            (folder / f"got{k}").write_text(str(got))

        children.append(fork(work))
    os.close(go)
    found = [signal_of(child) for child in children]
    got = [int((folder / f"got{k}").read_text()) for k in range(2)]
    return {"ended": found, "got": got, "entries": len({entry.id for entry in ledger.releases})}


def crowd(folder):
    """Sixteen processes at once, each with five authorisations: (how they ended, entries found)."""
    ledger = Ledger.create(folder / "crowd.json", epsilon=100.0, delta=1e-5, relation=ALPHA)

    def work():
        for _ in range(5):
            authorise(Ledger.open(ledger.path))

    return [together(*[work] * 16), len(Ledger.open(ledger.path).releases)]


LARGE = LaplaceSynthesizer(1.0, relation=ReplaceOne(), spacing=500.0, postprocess="plain")
SMALL = replace(LARGE, epsilon=0.25)
POINTS = PointPattern([[100.0, 100.0]] * 5, SQUARE)


def settling(folder):
    """Killed at every step of a release under a larger authorisation: (epsilon found, state, taken, how it ended)."""
    found = []
    for step in range(1, 200):
        ledger = Ledger.create(folder / f"settling{step}.json", epsilon=9.0, delta=0.0, relation=ReplaceOne())
        entry = ledger.authorise(LARGE.ceiling(SQUARE), mechanism="laplace", domain=SQUARE)

        def work(step=step, ledger=ledger, entry=entry):
            deadly(step)
            SMALL.plan(SQUARE, n=5).release(POINTS, ledger=Ledger.open(ledger.path), entry=entry)

        ended = signal_of(fork(work))
        (release,) = ledger.releases
        found.append([ledger.spent, release.state, release.taken, ended])
        if ended == 0:
            break
    return found


def owners(folder):
    """Two processes with one authorisation: (how many releases each made, epsilon found)."""
    found = []
    for k in range(5):
        ledger = Ledger.create(folder / f"owners{k}.json", epsilon=9.0, delta=0.0, relation=ReplaceOne())
        entry = ledger.authorise(LARGE.ceiling(SQUARE), mechanism="laplace", domain=SQUARE)

        def work(entry=entry, ledger=ledger):
            SMALL.plan(SQUARE, n=5).release(POINTS, ledger=Ledger.open(ledger.path), entry=entry)

        found.append([*together(work, work), ledger.spent])
    return found


def numbers(folder):
    """Two processes that release 5 and 4 points: (which of them were let, numbers in the ledger)."""
    found = []
    for k in range(5):
        ledger = Ledger.create(folder / f"numbers{k}.json", epsilon=9.0, delta=0.0, relation=ReplaceOne())

        def work(n, ledger=ledger):
            SMALL.release(PointPattern(POINTS.xy[:n], SQUARE), ledger=Ledger.open(ledger.path))

        done = together(partial(work, 5), partial(work, 4))
        found.append([done, [entry.n for entry in ledger.releases]])
    return found


def together(*works):
    """Whether each of several processes that start at once was allowed."""
    start, go = os.pipe()
    children = []
    for work in works:

        def wait(work=work):
            os.close(go)
            os.read(start, 1)
            try:
                work()
            except InputError:
                os._exit(7)

        children.append(fork(wait))
    os.close(go)
    return [signal_of(child) for child in children]


if __name__ == "__main__":
    place = Path(sys.argv[1])
    works = (between, steps, moments, race, crowd, settling, owners, numbers)
    print(json.dumps({work.__name__: work(place) for work in works}))  # noqa: T201
