"""Spark Connect: what it does when things fail, and what its server shows."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: `make test-spark` installs it")

from contexts import MESSAGE, made, two_shares
from spark_cluster import QUIET, VALUE, outcome
from spark_server import Server

import opendp_bayes as ob

pytestmark = pytest.mark.slow
FAILING = f"SELECT CAST(CAST(IF(id = 2, '{VALUE}', '1') AS INT) AS STRING) AS vote FROM range(9)"


def failed(happened: dict[str, Any]) -> bool:
    """With an error that shows nothing, no release, and one share less."""
    return (
        happened["error"].startswith(f"ReleaseError: {MESSAGE}")
        and VALUE not in happened["error"]
        and (happened["released"], happened["left"]) == (None, 1)
    )


def test_many_categories(connected: Any) -> None:
    frame = connected.sql("SELECT CAST(id % 40000 AS STRING) AS vote FROM range(100000)")
    query = made(frame, epsilon=400.0).query()
    labels = [str(at) for at in range(5_000)]
    asked = ob.posterior(query, "vote", categories=labels, nulls="null", unknown="other")
    assert asked.release().noisy_counts == (3,) * 5_000 + (0, 85_000)


def test_a_server_whose_queries_fail(tmp_path: Path, new_server: Callable[..., Server]) -> None:
    """A row, a cancelled query, a removed file, and the server killed, with its log off."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    quiet = tmp_path / "log4j2.properties"
    quiet.write_text(QUIET)
    server = new_server(tmp_path, f"-Dlog4j2.configurationFile=file:{quiet}")
    session = server.session()
    session.client.set_retry_policies([DefaultPolicy(max_retries=2)])  # or it tries for 10 minutes
    votes = session.sql("SELECT IF(id % 2 = 0, 'no', 'yes') AS vote FROM range(3000)")
    slow = session.sql(
        f"SELECT IF(xxhash64(id) % 3 = 0, 'no', '{VALUE}') AS vote FROM range(30000000000)"
    )
    try:
        assert outcome(two_shares(votes))["released"] == 0.5
        assert failed(outcome(two_shares(session.sql(FAILING))))
        path = tmp_path / "votes.parquet"
        votes.write.parquet(str(path))
        of = two_shares(session.read.parquet(str(path)))
        path.rename(tmp_path / "elsewhere.parquet")
        assert failed(outcome(of))
        (tmp_path / "elsewhere.parquet").rename(path)
        assert outcome(of)["released"] == 0.5
        of = two_shares(slow)
        assert failed(_meanwhile(lambda: outcome(of), session.interruptAll))
        assert failed(_meanwhile(lambda: outcome(of), server.kill))
    finally:
        server.stop()
    assert VALUE not in server.log.read_text()


def _meanwhile(ask: Any, act: Any) -> Any:
    """What is answered, when some seconds later something happens."""

    def later() -> None:
        time.sleep(10)
        act()

    thread = threading.Thread(target=later)
    thread.start()
    answer = ask()
    thread.join()
    return answer
