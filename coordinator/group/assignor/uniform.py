"""The uniform assignor: as many partitions for each member as for any other, and few moves.

Balance comes before stickiness: members keep what they have as far as nobody gets more than
one partition above another. Where all members subscribe alike a single pass is enough
(`uniform_homogeneous.py`); where they do not, topics are balanced one by one, again and
again (`uniform_heterogeneous.py`). Source: Kafka's `UniformAssignor`.
"""

from __future__ import annotations

from collections.abc import Mapping

from .assignor import GroupSpec, NewAssignment, without_overlaps
from .uniform_heterogeneous import assign_heterogeneous
from .uniform_homogeneous import assign_homogeneous


class UniformAssignor:
    """Kafka's `uniform`, the one that a group gets when no member asks for another."""

    name = "uniform"

    def assign(
        self, group: GroupSpec, partition_counts: Mapping[bytes, int]
    ) -> dict[str, NewAssignment]:
        """The target assignment; see `Assignor.assign`."""
        if not group.members:
            return {}
        group = without_overlaps(group)
        if group.is_homogeneous:
            return assign_homogeneous(group, partition_counts)
        return assign_heterogeneous(group, partition_counts)
