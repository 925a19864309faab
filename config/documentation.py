"""What each setting is for, in a sentence.

Loaded only to answer DescribeConfigs with documentation and to write docs/configuration.md:
a broker that serves never needs it. Which settings have an effect is said in `effects`.
"""

from __future__ import annotations

from .effects import CLIENT_METRICS_NOTE, effect_note

BROKER_TEXTS: dict[str, str] = {
    # Identity
    "broker.id": (
        "Number of this broker in its cluster. -1 lets the broker take the one in its data "
        "folder or, on a new folder, a free one."
    ),
    "node.id": "Another name for broker.id, used by newer files; -1 follows broker.id.",
    "broker.id.generation.enable": "Whether a broker without a number may be given one.",
    "broker.rack": (
        "Where this broker stands, such as a rack or a zone; partitions are spread over racks, "
        "and consumers may fetch from their own."
    ),
    "config.providers": "Classes that replace placeholders in settings.",
    "reserved.broker.max.id": (
        "Numbers up to this one are for brokers whose file names them; generated ones begin above."
    ),
    # Listeners
    "listeners": (
        "Where the broker accepts connections: NAME://host:port, separated by commas. An empty "
        "host is every interface, localhost both loopback addresses, port 0 a free port."
    ),
    "advertised.listeners": (
        "What clients and other brokers are told to connect to, where that differs from what is "
        "listened on. Unset means the same as listeners."
    ),
    "control.plane.listener.name": "Listener kept for requests from the controller.",
    "early.start.listeners": "Listeners that open before authorization is ready.",
    "inter.broker.listener.name": (
        "Listener over which brokers talk to each other; unset means the one named like "
        "security.inter.broker.protocol."
    ),
    "listener.security.protocol.map": (
        "What is spoken on each listener: pairs of a listener's name and PLAINTEXT, SSL, "
        "SASL_PLAINTEXT or SASL_SSL."
    ),
    "security.inter.broker.protocol": (
        "What brokers speak among themselves, where inter.broker.listener.name is not set."
    ),
    # Connections and threads
    "background.threads": "Threads for housekeeping.",
    "connection.failed.authentication.delay.ms": (
        "How long, in milliseconds, a connection that failed to authenticate stays open before "
        "it is closed, to slow down guessing."
    ),
    "connections.max.idle.ms": (
        "A connection over which nothing came for this many milliseconds is closed; -1 never "
        "closes one."
    ),
    "max.connection.creation.rate": "Connections accepted per second at most; others wait.",
    "max.connections": "Connections open at one time at most, over all listeners.",
    "max.connections.per.ip": "Connections open at one time from one address at most.",
    "max.connections.per.ip.overrides": (
        "Exceptions from max.connections.per.ip: pairs of an address or host name and a number."
    ),
    "num.io.threads": "Threads that carry out requests.",
    "num.network.threads": "Threads that read and write connections.",
    "queued.max.request.bytes": (
        "Bytes of requests that may wait to be carried out; -1 sets no limit."
    ),
    "queued.max.requests": "Requests that may wait to be carried out before reading stops.",
    "request.timeout.ms": "How long, in milliseconds, this broker waits for another's answer.",
    "socket.connection.setup.timeout.max.ms": (
        "Upper end, in milliseconds, of the growing time that connecting to another broker may "
        "take."
    ),
    "socket.connection.setup.timeout.ms": (
        "Time in milliseconds that the first attempt to connect to another broker may take."
    ),
    "socket.listen.backlog.size": "Connections that may wait to be accepted.",
    "socket.receive.buffer.bytes": "Receive buffer of each connection; -1 leaves it to the system.",
    "socket.request.max.bytes": "Largest request; a longer one closes its connection.",
    "socket.send.buffer.bytes": "Send buffer of each connection; -1 leaves it to the system.",
    # Requests
    "delete.records.purgatory.purge.interval.requests": (
        "Completed waits for DeleteRecords that are kept before they are swept."
    ),
    "fetch.max.bytes": (
        "Largest answer to a fetch, whatever the client asks for; a first batch larger than "
        "this is sent all the same."
    ),
    "fetch.purgatory.purge.interval.requests": (
        "Completed waits of fetches that are kept before they are swept."
    ),
    "max.incremental.fetch.session.cache.slots": "Fetch sessions remembered at one time.",
    "max.request.partition.size.limit": (
        "Partitions that one answer to DescribeTopicPartitions holds at most."
    ),
    "message.max.bytes": (
        "Largest batch of records a topic takes, as it is sent, unless the topic says otherwise."
    ),
    "producer.purgatory.purge.interval.requests": (
        "Completed waits of produce requests that are kept before they are swept."
    ),
    "share.fetch.purgatory.purge.interval.requests": (
        "Completed waits of share fetches that are kept before they are swept."
    ),
    "unstable.api.versions.enable": (
        "Whether versions of requests that are still in development are offered."
    ),
    "unstable.feature.versions.enable": (
        "Whether levels of features that are still in development are offered."
    ),
    # Topics
    "alter.config.policy.class.name": "Class that may refuse a change of settings.",
    "auto.create.topics.enable": (
        "Whether a topic that a producer or consumer asks for comes into being."
    ),
    "compression.gzip.level": (
        "Level for recompressing to gzip: 1 (fast) to 9 (small), -1 for the usual."
    ),
    "compression.lz4.level": "Level for recompressing to lz4: 1 (fast) to 17 (small).",
    "compression.type": (
        "How batches are stored: as they came (producer), uncompressed, or recompressed to "
        "gzip, snappy, lz4 or zstd."
    ),
    "compression.zstd.level": "Level for recompressing to zstd; more is smaller and slower.",
    "create.topic.policy.class.name": "Class that may refuse a new topic.",
    "default.replication.factor": (
        "Replicas of each partition of a topic that comes into being by itself."
    ),
    "delete.topic.enable": "Whether topics can be deleted.",
    "min.insync.replicas": "Replicas that must be in sync for a write with acks=all to be taken.",
    "num.partitions": "Partitions of a topic that comes into being by itself.",
    # Logs
    "log.dirs": (
        "Data folders, separated by commas; each new partition goes to the one with the fewest."
    ),
    "log.dir": "Data folder, where log.dirs is not set.",
    "log.retention.ms": (
        "Milliseconds that records are kept; -1 keeps them for good. Unset means the minutes or "
        "hours."
    ),
    "log.retention.minutes": "Minutes that records are kept, where no milliseconds are given.",
    "log.retention.hours": (
        "Hours that records are kept, where neither minutes nor milliseconds are given."
    ),
    "log.roll.ms": (
        "Milliseconds after which a new segment is begun even if the last one is not full. "
        "Unset means the hours."
    ),
    "log.roll.hours": "Hours after which a new segment is begun, where no milliseconds are given.",
    "log.roll.jitter.ms": (
        "Milliseconds by which a segment may be closed earlier, at random, so that not all are "
        "closed at once."
    ),
    "log.roll.jitter.hours": (
        "Hours by which a segment may be closed earlier, at random, where no milliseconds are "
        "given."
    ),
    "cordoned.log.dirs": "Data folders that get no new partitions.",
    "log.cleanup.policy": (
        "What becomes of old records: delete drops whole segments by age and size, compact "
        "keeps the last record of each key; both may be named."
    ),
    "log.dir.failure.timeout.ms": (
        "How long, in milliseconds, a broker may fail to report a broken data folder before it "
        "stops."
    ),
    "log.flush.interval.messages": "Records after which a log is forced to disk.",
    "log.flush.interval.ms": (
        "Time in milliseconds after which a log is forced to disk; unset means "
        "log.flush.scheduler.interval.ms."
    ),
    "log.flush.offset.checkpoint.interval.ms": (
        "How often, in milliseconds, the point up to which logs are known to be on disk is saved."
    ),
    "log.flush.scheduler.interval.ms": (
        "How often, in milliseconds, logs are looked at for forcing to disk."
    ),
    "log.flush.start.offset.checkpoint.interval.ms": (
        "How often, in milliseconds, the first offset of each log is saved."
    ),
    "log.index.interval.bytes": (
        "Bytes of records between two entries of an index; fewer make lookups quicker and "
        "indexes larger."
    ),
    "log.index.size.max.bytes": "Largest size of an index file; a full one closes its segment.",
    "log.initial.task.delay.ms": "Milliseconds after the start before housekeeping of logs begins.",
    "log.message.downconversion.enable": (
        "Whether records are rewritten for consumers that know older formats only."
    ),
    "log.message.timestamp.after.max.ms": (
        "How far, in milliseconds, a record's timestamp may lie ahead of the broker's clock."
    ),
    "log.message.timestamp.before.max.ms": (
        "How far, in milliseconds, a record's timestamp may lie behind the broker's clock."
    ),
    "log.message.timestamp.difference.max.ms": (
        "Older form of the two limits on how far a timestamp may be from the broker's clock."
    ),
    "log.message.timestamp.type": (
        "Whether a record keeps the producer's time (CreateTime) or gets the broker's "
        "(LogAppendTime)."
    ),
    "log.preallocate": "Whether a new segment's file gets its full size at once.",
    "log.retention.bytes": (
        "Bytes a partition may hold before its oldest segments go; -1 sets no limit."
    ),
    "log.retention.check.interval.ms": (
        "How often, in milliseconds, logs are looked at for segments to delete."
    ),
    "log.segment.bytes": "Size at which a segment is closed and a new one begun.",
    "log.segment.delete.delay.ms": (
        "Milliseconds between a segment's leaving its log and the deletion of its files."
    ),
    "num.recovery.threads.per.data.dir": (
        "Threads per data folder that check logs after an unclean stop."
    ),
    "num.replica.alter.log.dirs.threads": (
        "Threads that move partitions between data folders; unset means one per folder."
    ),
    # Log cleaner
    "log.cleaner.backoff.ms": (
        "Milliseconds that the cleaner rests when there is nothing to compact."
    ),
    "log.cleaner.dedupe.buffer.size": "Memory in bytes for the keys that a compaction remembers.",
    "log.cleaner.delete.retention.ms": (
        "Milliseconds that a record without a value stays in a compacted log, so that readers "
        "learn of the deletion."
    ),
    "log.cleaner.enable": "Whether logs are compacted at all.",
    "log.cleaner.io.buffer.load.factor": "How full the memory for keys may get, as a fraction.",
    "log.cleaner.io.buffer.size": "Memory in bytes that the cleaner reads and writes with.",
    "log.cleaner.io.max.bytes.per.second": (
        "Bytes per second that the cleaner reads and writes at most."
    ),
    "log.cleaner.max.compaction.lag.ms": (
        "Milliseconds after which a record must become subject to compaction."
    ),
    "log.cleaner.min.cleanable.ratio": (
        "Fraction of a log that must be uncompacted before it is worth a run."
    ),
    "log.cleaner.min.compaction.lag.ms": "Milliseconds that a record stays uncompacted at least.",
    "log.cleaner.threads": "Threads that compact logs.",
    # Replication
    "auto.leader.rebalance.enable": (
        "Whether leadership returns by itself to the replicas that are preferred."
    ),
    "controlled.shutdown.enable": "Whether a broker that stops hands its leaderships over first.",
    "controlled.shutdown.max.retries": (
        "Attempts to hand leaderships over before the broker stops anyway."
    ),
    "controlled.shutdown.retry.backoff.ms": "Milliseconds between two such attempts.",
    "follower.fetch.last.tiered.offset.enable": (
        "Whether a new follower begins at the end of what tiered storage holds."
    ),
    "inter.broker.protocol.version": "Version that brokers assume of each other during an upgrade.",
    "leader.imbalance.check.interval.seconds": (
        "How often, in seconds, the controller looks for leaderships away from preferred replicas."
    ),
    "leader.imbalance.per.broker.percentage": (
        "Share of a broker's partitions, in per cent, that may be led elsewhere before "
        "leadership is moved back."
    ),
    "num.replica.fetchers": "Connections to each other broker over which followers fetch.",
    "replica.fetch.backoff.ms": "Milliseconds that a follower waits after an error.",
    "replica.fetch.max.bytes": (
        "Bytes a follower asks for per partition; a first batch larger than this comes all the "
        "same."
    ),
    "replica.fetch.min.bytes": "Bytes a follower waits for.",
    "replica.fetch.response.max.bytes": "Bytes a follower asks for in one request.",
    "replica.fetch.wait.max.ms": (
        "Milliseconds a follower's fetch waits at most; it must be less than "
        "replica.lag.time.max.ms."
    ),
    "replica.high.watermark.checkpoint.interval.ms": (
        "How often, in milliseconds, high watermarks are saved."
    ),
    "replica.lag.time.max.ms": (
        "A follower that was not caught up for this many milliseconds leaves the in-sync replicas."
    ),
    "replica.selector.class": "Class that picks the replica a consumer is sent to.",
    "replica.socket.receive.buffer.bytes": "Receive buffer of a follower's connection.",
    "replica.socket.timeout.ms": (
        "Milliseconds a follower waits for an answer; at least replica.fetch.wait.max.ms."
    ),
    "unclean.leader.election.enable": (
        "Whether a replica that was not in sync may become leader when no other is left, which "
        "loses records."
    ),
    "unclean.leader.election.interval.ms": (
        "How often, in milliseconds, partitions without a leader are looked at for such an "
        "election."
    ),
    # Controller and metadata store
    "zookeeper.connect": (
        "ZooKeeper servers of a cluster over several machines: host:port, separated by commas, "
        "with a path at the end if wanted. Unset keeps the metadata in a file of the data "
        "folder, with no ZooKeeper."
    ),
    "controller.socket.timeout.ms": "Milliseconds the controller waits for a broker's answer.",
    "password.encoder.cipher.algorithm": "Cipher for passwords kept in ZooKeeper.",
    "password.encoder.iterations": "Rounds of key derivation for passwords kept in ZooKeeper.",
    "password.encoder.key.length": "Key length, in bits, for passwords kept in ZooKeeper.",
    "password.encoder.keyfactory.algorithm": "Key derivation for passwords kept in ZooKeeper.",
    "password.encoder.old.secret": "Secret that passwords in ZooKeeper were kept under before.",
    "password.encoder.secret": "Secret that passwords in ZooKeeper are kept under.",
    "zookeeper.clientCnxnSocket": "Java class of the connection to ZooKeeper.",
    "zookeeper.connection.timeout.ms": (
        "Milliseconds to wait for the first connection to ZooKeeper; unset means "
        "zookeeper.session.timeout.ms."
    ),
    "zookeeper.digest": (
        "name:password to show ZooKeeper, as its digest scheme wants it. Kafka has no such "
        "setting: it reads a JAAS file."
    ),
    "zookeeper.max.in.flight.requests": "Requests under way to ZooKeeper at one time.",
    "zookeeper.session.timeout.ms": (
        "A broker not heard of for this many milliseconds counts as gone."
    ),
    "zookeeper.set.acl": (
        "Whether nodes in ZooKeeper may be changed by brokers only: those with the same "
        "zookeeper.digest, or the same certificate."
    ),
    "zookeeper.ssl.cipher.suites": "Cipher suites towards ZooKeeper.",
    "zookeeper.ssl.client.enable": "Whether ZooKeeper is spoken to over TLS.",
    "zookeeper.ssl.crl.enable": "Whether revocation lists are checked towards ZooKeeper.",
    "zookeeper.ssl.enabled.protocols": "TLS versions accepted towards ZooKeeper.",
    "zookeeper.ssl.endpoint.identification.algorithm": (
        "How a ZooKeeper server's certificate is matched with its name."
    ),
    "zookeeper.ssl.keystore.location": "PEM file of the key and certificate shown to ZooKeeper.",
    "zookeeper.ssl.keystore.password": "Password of that key.",
    "zookeeper.ssl.keystore.type": "Format of that file: PEM, or unset.",
    "zookeeper.ssl.ocsp.enable": "Whether OCSP is asked about ZooKeeper's certificates.",
    "zookeeper.ssl.protocol": (
        "Oldest TLS version spoken to ZooKeeper, where zookeeper.ssl.enabled.protocols lists none."
    ),
    "zookeeper.ssl.truststore.location": (
        "PEM file of the certificates that ZooKeeper's is checked with; unset: the system's."
    ),
    "zookeeper.ssl.truststore.password": "Password of that file, which PEM has none of.",
    "zookeeper.ssl.truststore.type": "Format of that file: PEM, or unset.",
    # Groups and offsets
    "group.consumer.assignment.interval.ms": (
        "Milliseconds between two assignments of a group, at least."
    ),
    "group.consumer.assignors": (
        "Ways of sharing out partitions that the broker offers, the usual one first."
    ),
    "group.consumer.heartbeat.interval.ms": "Milliseconds between two heartbeats of a member.",
    "group.consumer.max.assignment.interval.ms": (
        "Largest assignment interval a group may be given."
    ),
    "group.consumer.max.heartbeat.interval.ms": "Largest heartbeat interval a group may be given.",
    "group.consumer.max.session.timeout.ms": "Largest session timeout a group may be given.",
    "group.consumer.max.size": "Members of one group at most.",
    "group.consumer.migration.policy": (
        "Whether groups may move between the classic and the newer protocol."
    ),
    "group.consumer.min.assignment.interval.ms": (
        "Smallest assignment interval a group may be given."
    ),
    "group.consumer.min.heartbeat.interval.ms": "Smallest heartbeat interval a group may be given.",
    "group.consumer.min.session.timeout.ms": "Smallest session timeout a group may be given.",
    "group.consumer.regex.refresh.interval.ms": (
        "How often, in milliseconds, subscriptions by pattern are compared with the topics."
    ),
    "group.consumer.session.timeout.ms": "A member not heard of for this many milliseconds is out.",
    "group.coordinator.append.linger.ms": (
        "Milliseconds that a coordinator gathers records before it writes them; -1 adapts."
    ),
    "group.coordinator.background.threads": "Threads for a coordinator's slower work.",
    "group.coordinator.cached.buffer.max.bytes": (
        "Largest buffer that a coordinator keeps for its next write."
    ),
    "group.coordinator.rebalance.protocols": "Protocols that groups may use.",
    "group.coordinator.threads": "Threads that coordinate groups.",
    "group.initial.rebalance.delay.ms": (
        "Milliseconds that a new group waits for more members before partitions are first "
        "shared out."
    ),
    "group.max.session.timeout.ms": "Largest session timeout a member may ask for.",
    "group.max.size": "Members of one group at most; whoever comes later is refused.",
    "group.min.session.timeout.ms": "Smallest session timeout a member may ask for.",
    "offset.metadata.max.bytes": "Largest note that may be kept with a committed offset.",
    "offsets.commit.required.acks": (
        "Replicas that must have a commit before it is answered; -1 is all in sync."
    ),
    "offsets.commit.timeout.ms": "Milliseconds a commit may wait for the replicas.",
    "offsets.load.buffer.size": "Bytes read at a time while committed offsets are loaded.",
    "offsets.retention.check.interval.ms": (
        "How often, in milliseconds, expired offsets are looked for."
    ),
    "offsets.retention.minutes": "Minutes that offsets of a group without members are kept.",
    "offsets.topic.compression.codec": (
        "Compression of the topic of offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."
    ),
    "offsets.topic.num.partitions": "Partitions of the topic of offsets; not to be changed later.",
    "offsets.topic.replication.factor": (
        "Replicas of the topic of offsets. Capped at the brokers there are."
    ),
    "offsets.topic.segment.bytes": (
        "Segment size of the topic of offsets; a smaller one loads and compacts sooner."
    ),
    # Streams groups
    "group.streams.assignment.interval.ms": (
        "Milliseconds between two assignments of a streams group, at least."
    ),
    "group.streams.heartbeat.interval.ms": (
        "Milliseconds between two heartbeats of a streams member."
    ),
    "group.streams.initial.rebalance.delay.ms": (
        "Milliseconds that a new streams group waits for more members."
    ),
    "group.streams.max.assignment.interval.ms": (
        "Largest assignment interval a streams group may be given."
    ),
    "group.streams.max.heartbeat.interval.ms": (
        "Largest heartbeat interval a streams group may be given."
    ),
    "group.streams.max.session.timeout.ms": "Largest session timeout a streams group may be given.",
    "group.streams.max.size": "Members of one streams group at most.",
    "group.streams.max.standby.replicas": (
        "Largest number of standby copies a streams group may be given."
    ),
    "group.streams.min.assignment.interval.ms": (
        "Smallest assignment interval a streams group may be given."
    ),
    "group.streams.min.heartbeat.interval.ms": (
        "Smallest heartbeat interval a streams group may be given."
    ),
    "group.streams.min.session.timeout.ms": (
        "Smallest session timeout a streams group may be given."
    ),
    "group.streams.num.standby.replicas": "Standby copies of each task's state.",
    "group.streams.session.timeout.ms": (
        "A streams member not heard of for this many milliseconds is out."
    ),
    # Share groups
    "group.share.assignment.interval.ms": (
        "Milliseconds between two assignments of a share group, at least."
    ),
    "group.share.assignors": "Ways of sharing out partitions to share groups.",
    "group.share.delivery.count.limit": (
        "Times a record is handed out before it counts as undeliverable."
    ),
    "group.share.heartbeat.interval.ms": (
        "Milliseconds between two heartbeats of a share group's member."
    ),
    "group.share.initialize.retry.interval.ms": (
        "Milliseconds between two attempts to initialize a share group's partition."
    ),
    "group.share.max.assignment.interval.ms": (
        "Largest assignment interval a share group may be given."
    ),
    "group.share.max.delivery.count.limit": "Largest delivery limit a share group may be given.",
    "group.share.max.heartbeat.interval.ms": (
        "Largest heartbeat interval a share group may be given."
    ),
    "group.share.max.partition.max.record.locks": (
        "Largest limit of records under way that a share group may be given."
    ),
    "group.share.max.record.lock.duration.ms": (
        "Longest lock on a record that a share group may be given."
    ),
    "group.share.max.session.timeout.ms": "Largest session timeout a share group may be given.",
    "group.share.max.share.sessions": "Share sessions remembered at one time.",
    "group.share.max.size": "Members of one share group at most.",
    "group.share.min.assignment.interval.ms": (
        "Smallest assignment interval a share group may be given."
    ),
    "group.share.min.delivery.count.limit": "Smallest delivery limit a share group may be given.",
    "group.share.min.heartbeat.interval.ms": (
        "Smallest heartbeat interval a share group may be given."
    ),
    "group.share.min.partition.max.record.locks": (
        "Smallest limit of records under way that a share group may be given."
    ),
    "group.share.min.record.lock.duration.ms": (
        "Shortest lock on a record that a share group may be given."
    ),
    "group.share.min.session.timeout.ms": "Smallest session timeout a share group may be given.",
    "group.share.partition.max.record.locks": (
        "Records of one partition that may be under way in a share group."
    ),
    "group.share.persister.class.name": "Class that keeps the state of share groups.",
    "group.share.record.lock.duration.ms": (
        "Milliseconds that a record handed out is locked for its reader."
    ),
    "group.share.session.timeout.ms": (
        "A share group's member not heard of for this many milliseconds is out."
    ),
    "share.coordinator.append.linger.ms": (
        "Milliseconds that the share coordinator gathers records before it writes; -1 adapts."
    ),
    "share.coordinator.cached.buffer.max.bytes": (
        "Largest buffer that the share coordinator keeps for its next write."
    ),
    "share.coordinator.cold.partition.snapshot.interval.ms": (
        "How often, in milliseconds, quiet share partitions are written out anew."
    ),
    "share.coordinator.load.buffer.size": "Bytes read at a time while share state is loaded.",
    "share.coordinator.snapshot.update.records.per.snapshot": (
        "Changes of a share partition's state between two full copies."
    ),
    "share.coordinator.state.topic.compression.codec": (
        "Compression of the topic of share state, numbered as for offsets."
    ),
    "share.coordinator.state.topic.min.isr": (
        "Replicas of the topic of share state that must be in sync."
    ),
    "share.coordinator.state.topic.num.partitions": (
        "Partitions of the topic of share state; not to be changed later."
    ),
    "share.coordinator.state.topic.prune.interval.ms": (
        "How often, in milliseconds, share state no longer needed is dropped."
    ),
    "share.coordinator.state.topic.replication.factor": (
        "Replicas of the topic of share state. Capped at the brokers there are."
    ),
    "share.coordinator.state.topic.segment.bytes": "Segment size of the topic of share state.",
    "share.coordinator.threads": "Threads that keep share state.",
    "share.coordinator.write.timeout.ms": "Milliseconds a write of share state may take.",
    # Transactions
    "add.partitions.to.txn.retry.backoff.max.ms": (
        "Upper end, in milliseconds, of the growing wait before a partition is added to a "
        "transaction again."
    ),
    "add.partitions.to.txn.retry.backoff.ms": (
        "Milliseconds before a partition is first tried again to be added to a transaction."
    ),
    "producer.id.expiration.check.interval.ms": (
        "How often, in milliseconds, producers no longer seen are looked for."
    ),
    "producer.id.expiration.ms": (
        "Milliseconds after which a producer's last sequence numbers are forgotten."
    ),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": (
        "How often, in milliseconds, transactions that took too long are looked for."
    ),
    "transaction.max.timeout.ms": (
        "Longest timeout a transactional producer may ask for, in milliseconds."
    ),
    "transaction.partition.verification.enable": (
        "Whether a transactional write is checked to belong to an open transaction."
    ),
    "transaction.remove.expired.transaction.cleanup.interval.ms": (
        "How often, in milliseconds, expired transactional ids are looked for."
    ),
    "transaction.state.log.load.buffer.size": "Bytes read at a time while transactions are loaded.",
    "transaction.state.log.min.isr": "Replicas of the topic of transactions that must be in sync.",
    "transaction.state.log.num.partitions": (
        "Partitions of the topic of transactions; not to be changed later."
    ),
    "transaction.state.log.replication.factor": (
        "Replicas of the topic of transactions. Capped at the brokers there are."
    ),
    "transaction.state.log.segment.bytes": "Segment size of the topic of transactions.",
    "transaction.two.phase.commit.enable": (
        "Whether a transaction may be prepared and completed later, driven from outside."
    ),
    "transactional.id.expiration.ms": (
        "Milliseconds after which an unused transactional id is forgotten."
    ),
    # Quotas
    "alter.log.dirs.replication.quota.window.num": (
        "Windows over which moves between data folders are measured."
    ),
    "alter.log.dirs.replication.quota.window.size.seconds": "Length of such a window in seconds.",
    "client.quota.callback.class": "Class that decides clients' quotas.",
    "controller.quota.window.num": "Windows over which changes of topics are measured.",
    "controller.quota.window.size.seconds": "Length of such a window in seconds.",
    "quota.window.num": "Windows over which clients' traffic is measured.",
    "quota.window.size.seconds": "Length of such a window in seconds.",
    "replication.quota.window.num": "Windows over which throttled replication is measured.",
    "replication.quota.window.size.seconds": "Length of such a window in seconds.",
    # Metrics
    "auto.include.jmx.reporter": "Whether measurements are told over JMX too.",
    "kafka.metrics.polling.interval.secs": "How often, in seconds, older measurements are told.",
    "kafka.metrics.reporters": "Classes that tell older measurements.",
    "metric.reporters": "Classes that tell measurements.",
    "metrics.num.samples": "Samples a measurement is made of.",
    "metrics.recording.level": "How much is measured.",
    "metrics.sample.window.ms": "Milliseconds that one sample covers.",
    "telemetry.max.bytes": "Largest measurement that a client may push.",
    # TLS
    "principal.builder.class": "Class that makes a principal of a connection.",
    "security.providers": "Classes that add security algorithms.",
    "ssl.allow.dn.changes": "Whether a new certificate may carry another distinguished name.",
    "ssl.allow.san.changes": "Whether a new certificate may carry other alternative names.",
    "ssl.cipher.suites": "Cipher suites to use; empty leaves it to the library.",
    "ssl.client.auth": "Whether clients must show a certificate: required, requested or none.",
    "ssl.enabled.protocols": "TLS versions accepted.",
    "ssl.endpoint.identification.algorithm": (
        "How a peer's certificate is matched with its name; empty does not match."
    ),
    "ssl.engine.factory.class": "Class that makes TLS engines.",
    "ssl.key.password": "Password of the private key.",
    "ssl.keymanager.algorithm": "Java's name of the key manager.",
    "ssl.keystore.certificate.chain": "This broker's certificate and its chain, as PEM text.",
    "ssl.keystore.key": "This broker's private key, as PEM text.",
    "ssl.keystore.location": "PEM file with this broker's private key and certificates.",
    "ssl.keystore.password": "Password of that file, which PEM has none of.",
    "ssl.keystore.type": "Format of that file; only PEM can be read.",
    "ssl.principal.mapping.rules": (
        "Rules that make a short name of a certificate's distinguished name."
    ),
    "ssl.protocol": "Newest TLS version, where ssl.enabled.protocols names none.",
    "ssl.provider": "Java's name of the TLS provider.",
    "ssl.secure.random.implementation": "Java's name of the source of randomness.",
    "ssl.trustmanager.algorithm": "Java's name of the trust manager.",
    "ssl.truststore.certificates": "Certificates to trust, as PEM text.",
    "ssl.truststore.location": (
        "PEM file with the certificates to trust; those of the system if there is none."
    ),
    "ssl.truststore.password": "Password of that file, which PEM has none of.",
    "ssl.truststore.type": "Format of that file; only PEM can be read.",
    # SASL
    "connections.max.reauth.ms": (
        "Milliseconds after which a SASL session must authenticate again; 0 never asks."
    ),
    "sasl.client.callback.handler.class": "Class that answers a client's SASL questions.",
    "sasl.enabled.mechanisms": "SASL mechanisms that clients may use.",
    "sasl.jaas.config": "Users and credentials of a mechanism, in the form of a JAAS entry.",
    "sasl.kerberos.kinit.cmd": "Path of kinit.",
    "sasl.kerberos.min.time.before.relogin": "Milliseconds between two Kerberos logins.",
    "sasl.kerberos.principal.to.local.rules": (
        "Rules that make a short name of a Kerberos principal."
    ),
    "sasl.kerberos.service.name": "Kerberos name that brokers run under.",
    "sasl.kerberos.ticket.renew.jitter": "Random part added to the time of a ticket's renewal.",
    "sasl.kerberos.ticket.renew.window.factor": (
        "Fraction of a ticket's life after which it is renewed."
    ),
    "sasl.login.callback.handler.class": "Class that answers the questions of a SASL login.",
    "sasl.login.class": "Class that logs in for SASL.",
    "sasl.login.connect.timeout.ms": "Milliseconds to connect to an identity provider.",
    "sasl.login.read.timeout.ms": "Milliseconds to wait for an identity provider's answer.",
    "sasl.login.refresh.buffer.seconds": (
        "Seconds before a credential's end by which it must be renewed."
    ),
    "sasl.login.refresh.min.period.seconds": "Seconds between two renewals of a credential.",
    "sasl.login.refresh.window.factor": (
        "Fraction of a credential's life after which it is renewed."
    ),
    "sasl.login.refresh.window.jitter": "Random part of that fraction.",
    "sasl.login.retry.backoff.max.ms": (
        "Upper end, in milliseconds, of the growing wait between two logins."
    ),
    "sasl.login.retry.backoff.ms": "Milliseconds before a login is first tried again.",
    "sasl.mechanism.inter.broker.protocol": "SASL mechanism that brokers use among themselves.",
    "sasl.oauthbearer.assertion.algorithm": "Algorithm that signs assertions.",
    "sasl.oauthbearer.assertion.claim.aud": "Audience named in assertions.",
    "sasl.oauthbearer.assertion.claim.exp.seconds": "Seconds until an assertion expires.",
    "sasl.oauthbearer.assertion.claim.iss": "Issuer named in assertions.",
    "sasl.oauthbearer.assertion.claim.jti.include": "Whether assertions carry an id of their own.",
    "sasl.oauthbearer.assertion.claim.nbf.seconds": (
        "Seconds before now from which an assertion holds."
    ),
    "sasl.oauthbearer.assertion.claim.sub": "Subject named in assertions.",
    "sasl.oauthbearer.assertion.file": "File with a ready-made assertion.",
    "sasl.oauthbearer.assertion.private.key.file": "Key that signs assertions.",
    "sasl.oauthbearer.assertion.private.key.passphrase": "Password of that key.",
    "sasl.oauthbearer.assertion.template.file": (
        "File with further headers and claims of assertions."
    ),
    "sasl.oauthbearer.client.credentials.client.id": "Client id for tokens by client credentials.",
    "sasl.oauthbearer.client.credentials.client.secret": "Secret that goes with that id.",
    "sasl.oauthbearer.clock.skew.seconds": (
        "Seconds by which the clocks of broker and identity provider may differ."
    ),
    "sasl.oauthbearer.expected.audience": "Audiences of which a token must name one.",
    "sasl.oauthbearer.expected.issuer": "Issuer that a token must name.",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": (
        "Milliseconds after which the identity provider's keys are fetched again."
    ),
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": (
        "Upper end, in milliseconds, of the growing wait between attempts to fetch them."
    ),
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": (
        "Milliseconds before fetching them is first tried again."
    ),
    "sasl.oauthbearer.jwks.endpoint.url": "Where the identity provider's keys are.",
    "sasl.oauthbearer.jwt.retriever.class": "Class that gets tokens.",
    "sasl.oauthbearer.jwt.validator.class": "Class that checks tokens.",
    "sasl.oauthbearer.scope": "Scope asked for in tokens.",
    "sasl.oauthbearer.scope.claim.name": "Claim that holds a token's scope.",
    "sasl.oauthbearer.sub.claim.name": "Claim that holds a token's subject.",
    "sasl.oauthbearer.token.endpoint.url": "Where tokens are asked for.",
    "sasl.server.callback.handler.class": "Class that answers a server's SASL questions.",
    "sasl.server.max.receive.size": (
        "Largest SASL message taken before a client is known, in bytes."
    ),
    # Delegation tokens and authorization
    "authorizer.class.name": (
        "Class that decides who may do what; empty lets everybody do everything."
    ),
    "delegation.token.expiry.check.interval.ms": (
        "How often, in milliseconds, expired delegation tokens are looked for."
    ),
    "delegation.token.expiry.time.ms": "Milliseconds a delegation token lives unless renewed.",
    "delegation.token.master.key": "Older name of delegation.token.secret.key.",
    "delegation.token.max.lifetime.ms": (
        "Milliseconds a delegation token lives at most, however often it is renewed."
    ),
    "delegation.token.secret.key": (
        "Secret that delegation tokens are signed with; the same on all brokers."
    ),
    # Tiered storage
    "log.local.retention.bytes": (
        "Bytes of a tiered log that are kept locally too; -2 follows log.retention.bytes."
    ),
    "log.local.retention.ms": (
        "Milliseconds that records of a tiered log are kept locally too; -2 follows "
        "log.retention.ms."
    ),
    "remote.fetch.max.wait.ms": "Milliseconds a fetch from tiered storage may wait.",
    "remote.list.offsets.request.timeout.ms": (
        "Milliseconds a lookup of offsets in tiered storage may take."
    ),
    "remote.log.index.file.cache.total.size.bytes": "Room for indexes of tiered segments.",
    "remote.log.index.file.cache.ttl.ms": (
        "Milliseconds that an unused index of a tiered segment is kept."
    ),
    "remote.log.manager.copier.thread.pool.size": "Threads that copy segments to tiered storage.",
    "remote.log.manager.copy.max.bytes.per.second": (
        "Bytes per second copied to tiered storage at most."
    ),
    "remote.log.manager.copy.quota.window.num": "Windows over which that is measured.",
    "remote.log.manager.copy.quota.window.size.seconds": "Length of such a window in seconds.",
    "remote.log.manager.expiration.thread.pool.size": "Threads that delete from tiered storage.",
    "remote.log.manager.fetch.max.bytes.per.second": (
        "Bytes per second read from tiered storage at most."
    ),
    "remote.log.manager.fetch.quota.window.num": "Windows over which that is measured.",
    "remote.log.manager.fetch.quota.window.size.seconds": "Length of such a window in seconds.",
    "remote.log.manager.follower.thread.pool.size": (
        "Threads that prepare followers of tiered logs."
    ),
    "remote.log.manager.task.interval.ms": "How often, in milliseconds, tiered logs are looked at.",
    "remote.log.manager.task.retry.backoff.max.ms": (
        "Upper end, in milliseconds, of the growing wait after a failure in tiered storage."
    ),
    "remote.log.manager.task.retry.backoff.ms": "Milliseconds of the first such wait.",
    "remote.log.manager.task.retry.jitter": "Random part of such a wait.",
    "remote.log.manager.thread.pool.size": "Threads that look after tiered logs.",
    "remote.log.metadata.custom.metadata.max.bytes": (
        "Largest note that tiered storage may keep with a segment."
    ),
    "remote.log.metadata.manager.class.name": "Class that keeps track of tiered segments.",
    "remote.log.metadata.manager.class.path": "Where that class is.",
    "remote.log.metadata.manager.impl.prefix": "Prefix of that class's own settings.",
    "remote.log.metadata.manager.listener.name": "Listener that class connects to.",
    "remote.log.reader.max.pending.tasks": "Reads from tiered storage that may wait.",
    "remote.log.reader.threads": "Threads that read from tiered storage.",
    "remote.log.storage.manager.class.name": "Class that keeps tiered segments.",
    "remote.log.storage.manager.class.path": "Where that class is.",
    "remote.log.storage.manager.impl.prefix": "Prefix of that class's own settings.",
    "remote.log.storage.system.enable": "Whether there is tiered storage.",
    # KRaft
    "broker.heartbeat.interval.ms": (
        "Milliseconds between two heartbeats of a broker to a KRaft controller."
    ),
    "broker.session.timeout.ms": (
        "Milliseconds after which a KRaft controller gives a silent broker up."
    ),
    "controller.listener.names": (
        "Listeners of a KRaft controller. Listeners of these names are passed over."
    ),
    "controller.performance.always.log.threshold.ms": (
        "Milliseconds from which a KRaft controller's slow step is logged."
    ),
    "controller.performance.sample.period.ms": (
        "Milliseconds between two looks at a KRaft controller's speed."
    ),
    "controller.quorum.append.linger.ms": "Milliseconds that a KRaft leader gathers records.",
    "controller.quorum.auto.join.enable": "Whether a KRaft controller joins the voters by itself.",
    "controller.quorum.bootstrap.servers": "KRaft controllers to ask first.",
    "controller.quorum.election.backoff.max.ms": (
        "Longest wait, in milliseconds, between two KRaft elections."
    ),
    "controller.quorum.election.timeout.ms": "Milliseconds a KRaft election may take.",
    "controller.quorum.fetch.max.bytes": "Bytes of the metadata log fetched at a time.",
    "controller.quorum.fetch.snapshot.max.bytes": "Bytes of a metadata snapshot fetched at a time.",
    "controller.quorum.fetch.timeout.ms": "Milliseconds without a KRaft leader before an election.",
    "controller.quorum.request.timeout.ms": "Milliseconds a KRaft request may take.",
    "controller.quorum.retry.backoff.ms": "Milliseconds before a KRaft request is sent again.",
    "controller.quorum.voters": "KRaft controllers that vote.",
    "initial.broker.registration.timeout.ms": (
        "Milliseconds a broker tries to register with a KRaft controller."
    ),
    "internal.metadata.delete.delay.millis": (
        "Milliseconds before files of the metadata log are deleted."
    ),
    "internal.metadata.log.segment.bytes": "Segment size of the metadata log, for tests.",
    "internal.metadata.max.batch.size.in.bytes": "Largest batch of the metadata log.",
    "metadata.log.dir": "Folder of the metadata; by default the first log directory.",
    "metadata.log.max.record.bytes.between.snapshots": (
        "Bytes of the metadata log between two snapshots."
    ),
    "metadata.log.max.snapshot.interval.ms": (
        "Milliseconds between two snapshots of the metadata log."
    ),
    "metadata.log.segment.bytes": "Segment size of the metadata log.",
    "metadata.log.segment.ms": "Milliseconds after which a segment of the metadata log is closed.",
    "metadata.max.idle.interval.ms": (
        "Milliseconds between two records of an idle KRaft controller."
    ),
    "metadata.max.retention.bytes": "Bytes of the metadata log that are kept.",
    "metadata.max.retention.ms": "Milliseconds that the metadata log is kept.",
    "process.roles": "Parts a KRaft process plays. A broker here always plays both.",
    "sasl.mechanism.controller.protocol": "SASL mechanism towards KRaft controllers.",
    "server.max.startup.time.ms": "Milliseconds a start may take.",
}

TOPIC_TEXTS: dict[str, str] = {
    "cleanup.policy": (
        "What becomes of old records: delete drops whole segments by age and size, compact "
        "keeps the last record of each key; both may be named, and none keeps everything."
    ),
    "compression.gzip.level": (
        "Level for recompressing to gzip: 1 (fast) to 9 (small), -1 for the usual."
    ),
    "compression.lz4.level": "Level for recompressing to lz4: 1 (fast) to 17 (small).",
    "compression.type": (
        "How batches are stored: as they came (producer), uncompressed, or recompressed to "
        "gzip, snappy, lz4 or zstd."
    ),
    "compression.zstd.level": "Level for recompressing to zstd; more is smaller and slower.",
    "delete.retention.ms": (
        "Milliseconds that a record without a value stays after compaction, so that readers "
        "learn of the deletion."
    ),
    "file.delete.delay.ms": (
        "Milliseconds between a segment's leaving the log and the deletion of its files."
    ),
    "flush.messages": "Records after which the log is forced to disk.",
    "flush.ms": "Milliseconds after which the log is forced to disk.",
    "follower.replication.throttled.replicas": (
        "Replicas whose fetching as followers is throttled: partition:broker pairs, or * for all."
    ),
    "index.interval.bytes": "Bytes of records between two entries of an index.",
    "internal.segment.bytes": (
        "Segment size below the usual minimum, for tests; wins over segment.bytes."
    ),
    "leader.replication.throttled.replicas": (
        "Replicas whose traffic as leaders is throttled: partition:broker pairs, or * for all."
    ),
    "local.retention.bytes": (
        "Bytes of a tiered log that are kept locally too; -2 follows retention.bytes."
    ),
    "local.retention.ms": (
        "Milliseconds that records of a tiered log are kept locally too; -2 follows retention.ms."
    ),
    "max.compaction.lag.ms": "Milliseconds after which a record must become subject to compaction.",
    "max.message.bytes": "Largest batch of records the topic takes, as it is sent.",
    "message.timestamp.after.max.ms": (
        "How far, in milliseconds, a record's timestamp may lie ahead of the broker's clock."
    ),
    "message.timestamp.before.max.ms": (
        "How far, in milliseconds, a record's timestamp may lie behind the broker's clock."
    ),
    "message.timestamp.type": (
        "Whether a record keeps the producer's time (CreateTime) or gets the broker's "
        "(LogAppendTime)."
    ),
    "min.cleanable.dirty.ratio": (
        "Fraction of the log that must be uncompacted before it is worth a run."
    ),
    "min.compaction.lag.ms": "Milliseconds that a record stays uncompacted at least.",
    "min.insync.replicas": "Replicas that must be in sync for a write with acks=all to be taken.",
    "preallocate": "Whether a new segment's file gets its full size at once.",
    "remote.log.copy.disable": "Whether nothing more is copied to tiered storage.",
    "remote.log.delete.on.disable": (
        "Whether tiered records go when tiered storage is switched off."
    ),
    "remote.storage.enable": (
        "Whether the topic uses tiered storage, which this broker does not have: true is refused."
    ),
    "retention.bytes": (
        "Bytes a partition may hold before its oldest segments go; -1 sets no limit."
    ),
    "retention.ms": "Milliseconds that records are kept; -1 keeps them for good.",
    "segment.bytes": "Size at which a segment is closed and a new one begun.",
    "segment.index.bytes": "Largest size of an index file; a full one closes its segment.",
    "segment.jitter.ms": (
        "Milliseconds by which a segment may be closed earlier, at random, so that not all are "
        "closed at once."
    ),
    "segment.ms": (
        "Milliseconds after which a new segment is begun even if the last one is not full."
    ),
    "unclean.leader.election.enable": (
        "Whether a replica that was not in sync may become leader when no other is left, which "
        "loses records."
    ),
}


GROUP_TEXTS: dict[str, str] = {
    "consumer.assignment.interval.ms": (
        "Milliseconds between two assignments of the group's partitions at least."
    ),
    "consumer.heartbeat.interval.ms": "Milliseconds between two heartbeats of a member.",
    "consumer.session.timeout.ms": (
        "Milliseconds without a heartbeat after which a member is taken for gone."
    ),
    "share.assignment.interval.ms": (
        "Milliseconds between two assignments of the share group's partitions at least."
    ),
    "share.auto.offset.reset": (
        "Where a share group begins in a partition that it has not read: earliest, latest, or "
        "by_duration: and how long ago."
    ),
    "share.delivery.count.limit": "How often a share group is given one record at most.",
    "share.heartbeat.interval.ms": "Milliseconds between two heartbeats of a share group's member.",
    "share.isolation.level": (
        "Whether a share group is given records of transactions before these are committed."
    ),
    "share.partition.max.record.locks": (
        "Records of one partition that a share group may work on at once."
    ),
    "share.record.lock.duration.ms": (
        "Milliseconds that a member of a share group may work on a record before another gets it."
    ),
    "share.renew.acknowledge.enable": (
        "Whether a member of a share group may ask for more time for a record."
    ),
    "share.session.timeout.ms": (
        "Milliseconds without a heartbeat after which a share group's member is taken for gone."
    ),
    "streams.assignment.interval.ms": (
        "Milliseconds between two assignments of the streams group's tasks at least."
    ),
    "streams.heartbeat.interval.ms": (
        "Milliseconds between two heartbeats of a streams group's member."
    ),
    "streams.initial.rebalance.delay.ms": (
        "Milliseconds that a new streams group waits for more members before its first assignment."
    ),
    "streams.num.standby.replicas": "Standby copies of each of a streams group's tasks.",
    "streams.session.timeout.ms": (
        "Milliseconds without a heartbeat after which a streams group's member is taken for gone."
    ),
}

CLIENT_METRICS_TEXTS: dict[str, str] = {
    "interval.ms": "Milliseconds between two reports of a client.",
    "match": (
        "Which clients report: client_id=, client_software_name= and the like, with a regular "
        "expression each; empty means all."
    ),
    "metrics": "Prefixes of the metrics that clients report.",
}

DYNAMIC_ONLY_TEXTS: dict[str, str] = {
    "follower.replication.throttled.rate": (
        "Bytes a second that throttled replicas fetch from their leaders at most."
    ),
    "leader.replication.throttled.rate": (
        "Bytes a second that leaders give throttled replicas at most."
    ),
    "replica.alter.log.dirs.io.max.bytes.per.second": (
        "Bytes a second that are moved between this broker's folders at most."
    ),
}


def of_broker(name: str) -> str | None:
    """What a broker setting is for, and whether it has an effect here; None if it is unknown."""
    text = BROKER_TEXTS.get(name) or DYNAMIC_ONLY_TEXTS.get(name)
    return None if text is None else text + effect_note(name)


def of_topic(name: str) -> str | None:
    """What a topic setting is for; None if it is unknown."""
    text = TOPIC_TEXTS.get(name)
    return None if text is None else text + effect_note(name)


def of_group(name: str) -> str | None:
    """What a group's setting is for, and whether it has an effect here; None if it is unknown."""
    text = GROUP_TEXTS.get(name)
    return None if text is None else text + effect_note(f"group.{name}")


def of_client_metrics(name: str) -> str | None:
    """What a client metrics subscription's setting is for; None if it is unknown."""
    text = CLIENT_METRICS_TEXTS.get(name)
    return None if text is None else text + CLIENT_METRICS_NOTE
