"""Planted faults of noise and bounds, each audited: which of them an audit of the mechanism finds by itself.

A fault of `benchmarks/faults/*.toml` that names a mechanism in `audit` is planted in a copy of the checkout, and the
mechanism is audited there at epsilon 1, with false alarm 1e-6, by as many runs as fit into the time.

    OMP_NUM_THREADS=1 python benchmarks/audit_faults.py --seconds 10 --out docs/results/audit.md
"""

import os
import sys
import warnings
from functools import partial
from pathlib import Path

import mutants
from audit_summary import summarise
from measuring import timed
from pages import command_line, fill, line, table

HEADS = "room", "fault", "mechanism, relation", "lower bound", "found", "runs", "seconds"
LOCAL_REPORTS = 20_000


def rejected(name: str, seconds: float) -> tuple[str, str, str, str]:
    """Lower bound, verdict, number of runs and seconds of an audit in the package that is imported first here."""
    import audit as audits

    from dpppsynth.auditing import audit
    from dpppsynth.core.errors import DpppsynthError, InformationWarning

    warnings.simplefilter("ignore", InformationWarning)
    try:
        target, local = audits.target_called(name)
        run = partial(audit, target, trials=LOCAL_REPORTS) if local else None
        result, spent = timed(run) if run else audits.within(target, seconds)
    except DpppsynthError as refusal:
        return "", f"refused: {type(refusal).__name__}", "", ""
    return f"{result.lower_bound:.3g}", "**yes**" if result.violated else "no", f"{result.trials}", f"{spent:.0f}"


def audited(fault: mutants.Fault, seconds: float) -> str:
    """Row of a fault, which is planted in the copy of this process."""
    folder = mutants.own_copy()
    path = folder / fault.file
    path.write_text(fault.planted(path.read_text(encoding="utf-8")), encoding="utf-8")
    os.chdir(folder)
    sys.path[:0] = [str(folder), str(folder / "benchmarks"), str(folder / "tests")]
    sys.dont_write_bytecode = True
    cells = rejected(fault.audit, seconds)
    import dpppsynth

    if not Path(dpppsynth.__file__).is_relative_to(folder):
        msg = f"audit_faults: dpppsynth is imported from {dpppsynth.__file__}, not from the copy; run it as a script."
        raise RuntimeError(msg)
    return line([fault.room, fault.name, fault.audit, *cells])


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="time of each audit")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", nargs="+", default=[], help="files of faults, without .toml, or names of faults")
    args = parser.parse_args()
    chosen = [each for each in mutants.faults() if each.audit]
    chosen = [each for each in chosen if not args.only or {each.room, each.name} & set(args.only)]
    rows = list(table(HEADS, ()))
    with mutants.workers(args.jobs, tasks=1) as pool:
        for each in pool.imap(partial(audited, seconds=args.seconds), chosen, chunksize=1):
            rows.append(each)
            print(each, flush=True)
            # Row by row: whatever ends the run, what was found is kept.
            fill(args.out, "audited faults", rows)
    summarise(args.out)


if __name__ == "__main__":
    main()
