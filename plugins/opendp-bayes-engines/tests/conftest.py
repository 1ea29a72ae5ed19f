"""Frames of every engine with the same rows, and Spark where it is installed."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from spark_server import Server, unwarned


def _without_spark() -> str | None:
    """Why Spark cannot run here, None where it can."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "pyspark is not installed: `make test-spark` installs it"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "Java is not installed: `apt-get install openjdk-17-jre-headless`"
    return None


@pytest.fixture(autouse=True, scope="module")
def _quick(coarse_errors: None, short_chains: None) -> None:
    """What is chosen among mechanisms, and what chains find, is released here, not measured."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The test of a cluster ends the session's Spark, so it comes after all that use it."""
    items.sort(key=lambda item: item.name == "test_a_cluster_in_which_things_fail")


@pytest.fixture(scope="session")
def java_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Spark's Java process prints, to the standard error that it was started with."""
    return tmp_path_factory.mktemp("spark") / "stderr"


@pytest.fixture(scope="session")
def spark(java_log: Path) -> Iterator[Any]:
    """A session of Spark in this process."""
    if reason := _without_spark():
        pytest.skip(reason)
    with unwarned():
        from pyspark.sql import SparkSession

        builder = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.driver.memory", "1g")
        )
        before = os.dup(2)
        with java_log.open("w") as log:
            os.dup2(log.fileno(), 2)
        session = builder.getOrCreate()
        os.dup2(before, 2)
        os.close(before)
        yield session
        session.stop()


@pytest.fixture(scope="session")
def new_server() -> Callable[..., Server]:
    """A server of Spark Connect that a test starts itself, where one can run."""
    if reason := _without_spark():
        pytest.skip(reason)
    pytest.importorskip("grpc", reason="grpcio is not installed: `make test-spark` installs it")
    return Server


@pytest.fixture(scope="session")
def connect_server(new_server, tmp_path_factory):
    server = new_server(tmp_path_factory.mktemp("connect"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def connected(connect_server: Server) -> Any:
    """A session of Spark Connect."""
    return connect_server.session()


@pytest.fixture(scope="session")
def partitions_added_in_twos() -> Iterator[None]:
    """Of three there is then one that is added later, as there is beyond sixteen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("opendp_bayes_engines.on_dask._TOGETHER", 2)
        yield


@pytest.fixture(scope="session")
def frame_in(request: pytest.FixtureRequest) -> Callable[[str, Path], Any]:
    """A frame of an engine over a Parquet file."""

    def make(engine: str, path: Path) -> Any:
        if engine == "polars":
            return pl.scan_parquet(path)
        if engine == "duckdb":
            import duckdb

            return duckdb.connect().read_parquet(str(path))
        if engine == "dask":
            import dask.dataframe as dd

            request.getfixturevalue("partitions_added_in_twos")
            return dd.read_parquet(path, dtype_backend="pyarrow").repartition(npartitions=3)
        if engine.startswith("ibis"):
            import ibis

            backend = ibis.polars if engine == "ibis on polars" else ibis.duckdb
            return backend.connect().read_parquet(path)
        name = "connected" if engine == "spark connect" else "spark"
        return request.getfixturevalue(name).read.parquet(str(path))

    return make
