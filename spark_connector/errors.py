"""The one exception of this package."""


class SparkConnectorError(RuntimeError):
    """Spark cannot be used like this; the text is one sentence that says what to do."""
