"""The converter on a real dask.distributed cluster: a scheduler and two worker processes."""

from pathlib import Path

import pytest
from convert_data import Data, contents

distributed = pytest.importorskip("distributed", reason="the extra [cluster] is not installed")


def executed(client) -> dict[str, int]:
    """How many tasks each worker has done."""
    return client.run(lambda dask_worker: dask_worker.state.executed_count)


def test_the_same_bytes_by_both_workers_and_with_relative_paths(tmp_path, monkeypatch):
    data = Data(tmp_path)
    data.convert(train_shards=8, eval_shards=4)
    here = contents(data.out)
    elsewhere = tmp_path / "of the workers"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)  # where the workers are, as on other machines
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(**options, local_directory=str(elsewhere)) as cluster,
        distributed.Client(cluster) as client,
    ):
        monkeypatch.chdir(data.folder)
        data.folder, data.out = Path(), Path("by dask")
        flags = ["--runner=DaskRunner", f"--dask_client_address={cluster.scheduler_address}"]
        data.convert(train_shards=8, eval_shards=4, beam_flags=flags)
        assert all(executed(client).values()) and len(executed(client)) == 2
    assert contents(data.out) == here
    assert len(here) == 12
