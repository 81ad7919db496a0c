"""Released numbers of every mechanism with a fixed seed: what a change of the code's structure must leave as it is.

    python benchmarks/seeded_numbers.py --out before.json
    python benchmarks/seeded_numbers.py --compare before.json

Every example of every mechanism that conformance runs is released once with seed 5. Compared are a hash of the
integers (or moved points, or paid patterns) and the intensity at 50 places, to nine digits.
"""

import argparse
import contextlib
import hashlib
import json
import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.cases import examples, parts, points, released
from support.seams import chance_for_nuts, few_simulations, one_prior

from dpppsynth.contract import registry


def numbers(case):
    """Hash of the released integers, and the intensity at public places."""
    nuts = contextlib.nullcontext() if case.example.slow else chance_for_nuts()
    with warnings.catch_warnings(), nuts, few_simulations(), one_prior():
        warnings.simplefilter("ignore")
        release = case.release(case.patterns()[0], 5)
    values = np.ascontiguousarray(released(release))
    at = points(3, 50, case.window).xy
    intensity = [part.intensity(at) for part in parts(release) if hasattr(part, "intensity")]
    return {
        "released": hashlib.sha256(values.tobytes()).hexdigest()[:16],
        "intensity": [f"{value:.9g}" for each in intensity for value in np.ravel(each)[:10]],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--compare", type=Path)
    arguments = parser.parse_args()
    found = {}
    for name in registry.names():
        for case in examples(name):
            found[str(case)] = numbers(case)
            print(case, found[str(case)]["released"], flush=True)
    if arguments.out:
        arguments.out.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    if arguments.compare:
        known = json.loads(arguments.compare.read_text())
        other = [name for name in known if known[name] != found.get(name)]
        print(f"{len(known)} examples of {len(registry.names())} mechanisms, {len(other)} with other numbers")
        print("\n".join(other))
        sys.exit(bool(other))


if __name__ == "__main__":
    main()
