"""A study on a cluster that loses a worker."""

import functools
import logging
import os
from pathlib import Path

import pytest
from support.studies import SQUARE, centre, die_once, jitter, uniform

from dpppsynth.evaluation.experiments import Scenario, Study

distributed = pytest.importorskip("distributed")


def ran_in(outcome, folder):
    (Path(folder) / str(os.getpid())).touch()
    return 0.0


@pytest.mark.slow
def test_a_cluster_gives_the_same_table_although_a_worker_is_killed(tmp_path):
    (tmp_path / "pids").mkdir()
    measures = {
        "centre": centre,
        "ran": functools.partial(ran_in, folder=tmp_path / "pids"),
        "die": functools.partial(die_once, flag=tmp_path / "flag"),
    }
    scenarios = {"one": Scenario(SQUARE, uniform, 0.1)}
    study = Study(scenarios, {"jitter": jitter}, [1, 10, 2], [0, "1/n"], repeats=3, measures=measures)
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=logging.CRITICAL
    )
    with cluster, distributed.Client(cluster):
        table = study.run(tmp_path / "cluster", engine="dask")
    assert (tmp_path / "flag").exists()
    assert str(os.getpid()) not in {path.name for path in (tmp_path / "pids").iterdir()}
    assert len(table) == 18
    assert table.equals(study.run(tmp_path / "here", workers=1))
