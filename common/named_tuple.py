"""`NamedTuple` for what every start imports: a class of it is made in half the time.

That of `typing` compiles the annotation of each field and checks that it is a type, for who asks at
run time. Nobody does: annotations here are text, and mypy reads them. A start makes a hundred of
these classes.
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NamedTuple
else:

    class NamedTupleType(type):
        """Derives a class from `collections.namedtuple`, with the fields that its body declares."""

        def __new__(cls, name, bases, namespace):
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            fields = namespace.get("__annotations__", {})
            defaults = [namespace.pop(field) for field in fields if field in namespace]
            base = namedtuple(name, fields, defaults=defaults, module=namespace["__module__"])
            return type(name, (base, *bases[1:]), {"__slots__": (), **namespace})

    class NamedTuple(metaclass=NamedTupleType):
        """As that of `typing`."""


__all__ = ["NamedTuple"]
