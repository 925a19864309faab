"""Pipelines between topics and a lake: archive, replay, mirror, audit; and replicas compared.

Each is a function that takes a Spark session and a settings tuple, tells how far it is, and may be
killed at any point and started again. They work with any Kafka cluster: records are read by Spark's
own Kafka source (or by `format("odradek")`), and written in transactions by confluent-kafka.

Where the position of a pipeline is kept is what makes it exact. `archive` keeps it in the table, in
the commit that brings the records, or for files in Spark's checkpoint, which commits a batch of
them at once. `replay` and `mirror` keep it in the target cluster, in the same transaction as the
records. `audit` and `verify_replicas` have none: they read.
"""

from .archive import (
    ArchiveResult,
    ArchiveSettings,
    MaintainSettings,
    MaintenanceStep,
    TableLocation,
    ValueSettings,
    archive_topics,
    read_archive,
)
from .archive.maintenance import maintain_table
from .audit.audit import audit_topics
from .audit.expectations import Expectation, read_expectations
from .audit.history import HistorySettings
from .audit.report import AuditFault, AuditReport, AuditSettings
from .audit.results import ExpectationResult
from .mirror import MirrorSettings, mirror_topics
from .progress import PipelineProgress
from .replay import ReplaySettings, replay_archive
from .replicas.report import ReplicaDifference, ReplicaReport, VerifyReplicasSettings
from .replicas.verify_replicas import verify_replicas
from .topic_source import TopicSource
from .topic_target import TopicTarget
from .transactional_copy import CopyResult

__all__ = [
    "ArchiveResult",
    "ArchiveSettings",
    "AuditFault",
    "AuditReport",
    "AuditSettings",
    "CopyResult",
    "Expectation",
    "ExpectationResult",
    "HistorySettings",
    "MaintainSettings",
    "MaintenanceStep",
    "MirrorSettings",
    "PipelineProgress",
    "ReplaySettings",
    "ReplicaDifference",
    "ReplicaReport",
    "TableLocation",
    "TopicSource",
    "TopicTarget",
    "ValueSettings",
    "VerifyReplicasSettings",
    "archive_topics",
    "audit_topics",
    "maintain_table",
    "mirror_topics",
    "read_archive",
    "read_expectations",
    "replay_archive",
    "verify_replicas",
]
