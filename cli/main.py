"""The entry point of `odradek`: it looks at the first argument, and little else.

`serve` is dispatched before typer and rich are imported: together they take longer to load than a
broker takes to start.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv`, by default this process's own arguments.

    Returns the exit code: 0 when done, 1 when it could not be done, 2 when it was not
    understood.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["serve"]:
        from .serve.command import main as serve

        return serve(arguments[1:])
    if arguments[:1] == ["__complete"]:
        from .completion.candidates import complete

        return complete(*arguments[1:3])
    from .run import run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
