"""The configuration texts of the two servers."""

from __future__ import annotations

USERNAME = "midwatch"

_KAFKA = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=CLIENT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=CLIENT://127.0.0.1:{port}
listener.security.protocol.map=CLIENT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=CLIENT
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
sasl.mechanism.controller.protocol=PLAIN
listener.name.client.plain.sasl.jaas.config={login}
listener.name.controller.plain.sasl.jaas.config={login}
log.dirs=data

# Topics are made by midwatch, with their partition counts, or not at all.
auto.create.topics.enable=false
num.partitions=4
message.max.bytes=2097152

# One node: no replicas, and small internal topics.
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
offsets.topic.segment.bytes=8388608
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
transaction.state.log.segment.bytes=8388608
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1

# A worker that is gone is noticed soon, and the first one need not wait for others.
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000

# After a crash the controller refuses the broker until its old session is over.
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500

# Nobody follows the one controller: it need not write down twice a second that it is still there.
metadata.max.idle.interval.ms=5000

# Little memory, few threads, small files.
num.network.threads=2
num.io.threads=4
background.threads=2
num.recovery.threads.per.data.dir=2
log.segment.bytes=67108864
log.index.size.max.bytes=1048576
log.cleaner.dedupe.buffer.size=16777216
log.cleaner.io.buffer.size=262144
"""

_REDIS = """\
bind 127.0.0.1
port {port}
requirepass {password}
dir ./
daemonize no
tcp-backlog 128
databases 16

# An answered write is on the disk: claims of commands must not be rolled back.
appendonly yes
appendfsync always
save ""
# The rewritten file holds commands, which any Redis or Valkey reads, and not one server's own format.
aof-use-rdb-preamble no

# Nothing is forgotten to make room; at the limit writes are refused.
maxmemory {memory_megabytes}mb
maxmemory-policy noeviction
"""


def kafka_properties(*, port: int, controller_port: int, password: str) -> str:
    """`server.properties` of one node that is broker and controller, for a start in its own directory.

    Paths in it are relative on purpose: Kafka splits them at commas and reads the file as Latin-1.
    Both listeners ask for the password: on a machine of many users loopback is not private.
    """
    login = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="{USERNAME}" password="{password}" user_{USERNAME}="{password}";'
    )
    return _KAFKA.format(port=port, controller_port=controller_port, login=login)


def redis_configuration(*, port: int, password: str, memory_megabytes: int) -> str:
    """`redis.conf` for Redis 6.2 and later and Valkey, for a start in its own directory."""
    return _REDIS.format(port=port, password=password, memory_megabytes=memory_megabytes)
