"""DescribeLogDirs: log directories and what is in them."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, int16, int32, int64, string


class DescribeLogDirsRequest(Message, api_key=35, versions="0-5", flexible="2+"):
    topics: list[DescribableLogDirTopic] | None = array(nullable="0+")

    class DescribableLogDirTopic(Struct):
        topic: str = string()
        partitions: list[int] = array(of=int32)


class DescribeLogDirsResponse(Message, api_key=35, versions="0-5", flexible="2+"):
    throttle_time_ms: int = int32()
    error_code: int = int16("3+", ignorable=True)
    results: list[DescribeLogDirsResult] = array()

    class DescribeLogDirsResult(Struct):
        error_code: int = int16()
        log_dir: str = string()
        topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic] = array()
        total_bytes: int = int64("4+", default=-1, ignorable=True)
        usable_bytes: int = int64("4+", default=-1, ignorable=True)
        is_cordoned: bool = bool_("5+", ignorable=True)

    class DescribeLogDirsTopic(Struct):
        name: str = string()
        partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition] = array()

    class DescribeLogDirsPartition(Struct):
        partition_index: int = int32()
        partition_size: int = int64()
        offset_lag: int = int64()
        is_future_key: bool = bool_()
