"""A broker's and a topic's settings, from one definition table.

The command line, the properties file, DescribeConfigs and `docs/configuration.md` all read the
same tables: `broker_table` and `topic_table` say what there is, `documentation` what it is for.
`serve` imports the tables but never the prose. Nothing here opens a file or a socket.
"""

from .broker_config import BrokerConfig
from .definition import ConfigError

__all__ = ["BrokerConfig", "ConfigError"]
