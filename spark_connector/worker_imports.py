"""What a Python worker of Spark's reads again and again for nothing."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from zipimport import zipimporter

_OF_SPARK = re.compile(r"(pyspark|py4j-.+-src)\.zip|spark-core_.+\.jar")


def forget_zip_importers() -> None:
    """Spare this process the directories of Spark's own archives, before its next task.

    Spark before 4.3 has a worker call `importlib.invalidate_caches()` before each task, and each
    importer of an archive then reads its directory anew, in Python. There is an importer for every
    package in it: for PySpark, py4j and Spark's jar fifteen of them, which take a quarter of a
    second of processor time, in each of the workers that plan a query and in each that reads. An
    importer that is not in the cache is not told. One that is needed again is made anew, of the
    directory as it was read before; Spark's archives do not change while it runs, and others,
    which may, are left alone.
    """
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter) and _OF_SPARK.fullmatch(Path(importer.archive).name):
            del sys.path_importer_cache[path]
