"""Catalogs of Iceberg tables, and what pyiceberg, which is no Spark, reads of their tables."""

from __future__ import annotations

import fcntl
import http.client
import os
import shutil
import subprocess
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.spark_connector.installation import find_installation
from odradek.spark_connector.pipelines.archive.iceberg import CATALOG
from odradek.testing.process.held_port import HeldPort

if TYPE_CHECKING:
    from typing import Self

    from pyiceberg.table import Table

PROJECT = Path(__file__).parents[1] / "interop" / "iceberg_rest"
FETCH_SECONDS_MAX = 600
START_SECONDS_MAX = 240
POLL_S = 0.2


class Catalog(NamedTuple):
    """A catalog in a folder."""

    kind: str
    """`hadoop`, `jdbc` or `rest`."""
    warehouse: Path
    properties: dict[str, str]
    """For Spark."""

    @classmethod
    def hadoop(cls, folder: Path) -> Catalog:
        """The folder itself."""
        return cls("hadoop", folder / "warehouse", {})

    @classmethod
    def jdbc(cls, folder: Path) -> Catalog:
        """A database of SQLite."""
        uri = f"jdbc:sqlite:{folder / 'catalog.db'}"
        return cls("jdbc", folder / "warehouse", {"type": "jdbc", "uri": uri})

    def table(self, name: str) -> Table:
        """A table as pyiceberg sees it."""
        if self.kind == "hadoop":
            from pyiceberg.table import StaticTable

            metadata = self.warehouse.joinpath(*name.split("."), "metadata")
            version = (metadata / "version-hint.text").read_text().strip()
            return StaticTable.from_metadata(str(metadata / f"v{version}.metadata.json"))
        if self.kind == "jdbc":
            from pyiceberg.catalog.sql import SqlCatalog

            uri = "sqlite:///" + self.properties["uri"].removeprefix("jdbc:sqlite:")
            return SqlCatalog(CATALOG, uri=uri, warehouse=str(self.warehouse)).load_table(name)
        from pyiceberg.catalog.rest import RestCatalog

        table: Table = RestCatalog(CATALOG, uri=self.properties["uri"]).load_table(name)
        return table

    def rows(self, name: str) -> list[dict[str, Any]]:
        """What is in a table, by topic, partition and offset."""
        found = self.table(name).scan().to_arrow().to_pylist()
        return sorted(found, key=lambda row: (row["topic"], row["partition"], row["offset"]))


class RestCatalogServer:
    """The REST catalog of Iceberg's tests as a process; a context manager that ends it.

    Args:
        folder: of its warehouse and its database.
    """

    def __init__(self, folder: Path) -> None:
        java = shutil.which("java")
        assert java is not None, "`java` is not installed: install a JDK of 17 or later"
        self._held = HeldPort()
        log = folder / "rest-catalog.log"
        uri = f"http://{self._held.address}"
        self.catalog = Catalog("rest", folder / "warehouse", {"type": "rest", "uri": uri})
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                [
                    *(java, "-Xmx300m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
                    *("-cp", _class_path(), "org.apache.iceberg.rest.RESTCatalogServer"),
                ],
                env={
                    **os.environ,
                    "CATALOG_WAREHOUSE": str(self.catalog.warehouse),
                    "CATALOG_URI": f"jdbc:sqlite:{folder / 'rest.db'}",
                    "CATALOG_REST_PORT": str(self._held.port),
                },
                cwd=folder,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._answers():
            is_over = self._process.poll() is not None or time.monotonic() > deadline
            assert not is_over, f"the REST catalog did not start: {log.read_text()[-3000:]}"
            time.sleep(POLL_S)

    def kill(self) -> None:
        """End it at once; its port refuses connections then."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._held.close()

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(self._held.address, timeout=5)
        try:
            connection.request("GET", "/v1/config")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


@cache
def _class_path() -> str:
    """Of the server, fetched by Maven, with Spark's Hadoop."""
    maven = shutil.which("mvn")
    assert maven is not None, "`mvn` is not installed: install Maven, such as Debian's maven"
    with (PROJECT / "pom.xml").open() as pom:
        fcntl.flock(pom, fcntl.LOCK_EX)
        done = subprocess.run(
            [maven, "-q", "-B", "dependency:copy-dependencies"],
            cwd=PROJECT,
            capture_output=True,
            text=True,
            timeout=FETCH_SECONDS_MAX,
        )
    assert done.returncode == 0, f"Maven failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    hadoop = sorted(find_installation().jars.glob("hadoop-client-*.jar"))
    return os.pathsep.join([f"{PROJECT}/target/dependency/*", *map(str, hadoop)])
