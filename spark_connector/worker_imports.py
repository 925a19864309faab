"""What a Python worker of Spark's reads again and again for nothing."""

from __future__ import annotations

import sys
from zipimport import zipimporter


def forget_zip_importers() -> None:
    """Spare this process the directories of Spark's own zip files, before its next task.

    Spark before 4.3 has a worker call `importlib.invalidate_caches()` before each task, and the
    importer of a zip file then reads its directory anew, in Python: a tenth of a second of
    processor time for those of PySpark and py4j, in each of the workers that plan a query and in
    each that reads. An importer that is not in the cache is not told. One that is needed again is
    made anew, of the directory as it was read before; Spark's zip files do not change while it
    runs, and others, which may, are left alone.
    """
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter) and path.endswith(("pyspark.zip", "-src.zip")):
            del sys.path_importer_cache[path]
