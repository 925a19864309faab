"""Options of a console that `odradek serve --console` passes on to it: declared once, for both."""

from __future__ import annotations

from ...common.named_tuple import NamedTuple


class PassedOption(NamedTuple):
    """An option with a value.

    Attributes:
        flag: its name on the command line.
        is_repeated: whether it may be given more than once.
    """

    flag: str
    metavar: str
    help: str
    is_repeated: bool = False

    @property
    def name(self) -> str:
        """The attribute that a parser keeps its value in."""
        return self.flag.removeprefix("--").replace("-", "_")


REGISTRY = PassedOption(
    "--registry",
    "URL",
    "A schema registry, to show keys and values in Avro, Protobuf and JSON Schema as JSON "
    "(needs odradek[schemas]).",
)
SCHEMA = PassedOption(
    "--schema",
    "TOPIC=FILE",
    "Values of a topic are of the schema in a file, with nothing in front: .avsc, .json or .proto "
    "(of which FILE:MESSAGE names a message); may be repeated (needs odradek[schemas]).",
    is_repeated=True,
)
KEY_SCHEMA = PassedOption(
    "--key-schema",
    "TOPIC=FILE",
    "As --schema, for the keys of a topic; may be repeated.",
    is_repeated=True,
)
PASSED_ON = (REGISTRY, SCHEMA, KEY_SCHEMA)
