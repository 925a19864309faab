"""A SparkSession that can read and write Kafka topics, in one call."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .connector_jars import connector_jars
from .data_sources import register
from .errors import SparkConnectorError
from .installation import check_java, find_installation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECTOR_CLASS = "org.apache.spark.sql.kafka010.KafkaSourceProvider"


def spark_session(
    app_name: str = "odradek",
    *,
    master: str = "local[*]",
    packages: Sequence[str] | None = None,
    ivy_folder: str | Path | None = None,
    conf: Mapping[str, str] | None = None,
    log_file: str | Path | None = None,
    existing: SparkSession | SparkSession.Builder | None = None,
) -> SparkSession:
    """A SparkSession with the Kafka connector that belongs to the installed PySpark.

    The connector is fetched once (about 10 MB) into `ivy_folder`, by default a folder in the
    user's cache; later sessions start without a network.

    `packages` replaces the connector's Maven coordinates; with an empty list there is no connector,
    which `format("odradek")` and `format("odradek-log")` do not need. `conf` is any Spark
    configuration and wins over what is set here; jars it names in `spark.jars` are added to the
    connector's.
    `log_file` takes what the JVM prints to its standard error; without it, that goes where
    Python's goes. `existing` is a builder to go on with, whose own settings win, or a running
    session, which is given back if it has the connector; both get the formats `odradek` and
    `odradek-log`.

    Raises SparkConnectorError, in one sentence, when PySpark or a Java is missing or too old,
    when versions do not match, when the connector cannot be fetched, and when this process
    already runs a Spark without it, or when Spark does not start.
    """
    installation = find_installation()
    if existing is not None and hasattr(existing, "sparkContext"):
        return _with_connector(existing, is_needed=packages is None or bool(packages))
    check_java()
    kept_in = None if ivy_folder is None else Path(ivy_folder)
    jars = [str(jar) for jar in connector_jars(installation, packages, kept_in)]
    settings = dict(conf or {})
    if settings.get("spark.jars"):
        jars = [*settings["spark.jars"].split(","), *jars]
    if jars:
        settings["spark.jars"] = ",".join(jars)
    _refuse_running_jvm(jars)

    # Executors must run this Python, not whichever is first on the path; and a local Spark
    # should not depend on the machine's host name resolving.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder if existing is None else existing
    given = {} if existing is None else dict(builder._options)
    settings = {"spark.app.name": app_name, "spark.master": master, **settings, **given}
    if given.get("spark.jars"):
        settings["spark.jars"] = ",".join([given["spark.jars"], *jars])
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _standard_error_to(None if log_file is None else Path(log_file)):
        spark = _started(builder, log_file)
    return spark if existing is None else register(spark)


def _with_connector(spark: Any, *, is_needed: bool) -> SparkSession:
    """A session of somebody else's.

    Raises:
        SparkConnectorError: it has no connector, and that is needed.
    """
    if is_needed:
        loader = spark.sparkContext._jvm.Thread.currentThread().getContextClassLoader()
        try:
            loader.loadClass(CONNECTOR_CLASS)
        except Exception as error:
            raise SparkConnectorError(
                "this session was started without the Kafka connector; make it with"
                " spark_session(existing=SparkSession.builder), or do without by packages=[] and"
                " format('odradek')"
            ) from error
    return register(spark)


def _started(builder: Any, log_file: str | Path | None) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkRuntimeError

    try:
        session: SparkSession = builder.getOrCreate()
    except (Py4JError, PySparkRuntimeError) as error:
        reason = str(error).partition("\n")[0]
        where = f"{log_file}" if log_file else "its output above"
        raise SparkConnectorError(f"Spark did not start ({reason}); see {where}") from error
    return session


def _refuse_running_jvm(jars: Sequence[str]) -> None:
    """A JVM takes its class path at its start: a running one cannot get the connector later."""
    if "pyspark" not in sys.modules:
        return
    from pyspark import SparkContext

    if SparkContext._gateway is None:
        return
    # spark-submit keeps the settings a JVM was started with in its system properties.
    started_with = SparkContext._gateway.jvm.java.lang.System.getProperty("spark.jars") or ""
    running = {Path(jar.removeprefix("file:")) for jar in started_with.split(",")}
    if not {Path(jar) for jar in jars} <= running:
        raise SparkConnectorError(
            "a Spark without the Kafka connector was already started in this process; make the"
            " first session with spark_session(), or start a new process"
        )


@contextmanager
def _standard_error_to(path: Path | None) -> Iterator[None]:
    """Let a process started within inherit `path` as its standard error.

    The JVM keeps it for life, while Python has its own back on leaving.
    """
    if path is None:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with path.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(saved, 2)
        os.close(saved)
