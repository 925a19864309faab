"""The one exception of this room."""


class SparkConnectorError(RuntimeError):
    """Spark cannot be used as asked; the text is one sentence that says what to do."""
