"""A server of Spark Connect, started as a process of its own."""

import os
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def unwarned() -> Iterator[None]:
    """PySpark warns of the version of pandas when it is imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Server:
    """A server of Spark Connect in a process of its own, and what it prints."""

    def __init__(self, folder: Path, java_options: str = "") -> None:
        import pyspark

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.log = folder / "server"
        self._clients: list[Any] = []
        settings = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": self._port,
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": 2,
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": java_options,
        }
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [
                    Path(pyspark.__path__[0]) / "bin" / "spark-submit",
                    *("--master", "local[2]"),
                    *(part for of in settings.items() for part in ("--conf", "{}={}".format(*of))),
                    *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
                    "spark-internal",
                ],
                stdout=log,
                stderr=log,
                cwd=folder,
                env=os.environ
                | {"SPARK_HOME": pyspark.__path__[0], "PYSPARK_PYTHON": sys.executable},
            )

    def session(self) -> Any:
        with unwarned():
            from pyspark.sql.connect.session import SparkSession
        for _ in range(240):
            with socket.socket() as ours:
                if ours.connect_ex(("127.0.0.1", self._port)) == 0:
                    break
            time.sleep(0.5)
        session = SparkSession.builder.remote(f"sc://127.0.0.1:{self._port}").create()
        self._clients.append(session.client)
        return session

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Its clients, too: one that is open when Python ends looks for its server for minutes."""
        for client in self._clients:
            client.close()
        self.kill()
