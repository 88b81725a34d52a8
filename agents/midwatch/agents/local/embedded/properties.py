"""The configuration files of the two servers."""

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

# Only midwatch makes topics, with their partition counts.
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

# The group notices a dead worker soon, and the first worker does not wait for others.
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000

# After a crash the controller refuses the broker until its old session is over.
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500

# No other controller follows this one, so it need not write twice a second that it lives.
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

# A write is on the disk before its answer, so that no claim of a command is rolled back.
appendonly yes
appendfsync always
save ""
# The rewritten file holds commands, which any Redis or Valkey reads.
aof-use-rdb-preamble no

# Redis evicts nothing. At the limit it refuses writes.
maxmemory {memory_megabytes}mb
maxmemory-policy noeviction
"""


def kafka_properties(*, port: int, controller_port: int, password: str) -> str:
    """`server.properties` of one node that is broker and controller. Kafka must start in its own directory.

    Its paths are relative, because Kafka splits paths at commas and reads the file as Latin-1. Both listeners
    require the password, because loopback is not private on a machine of many users.
    """
    login = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="{USERNAME}" password="{password}" user_{USERNAME}="{password}";'
    )
    return _KAFKA.format(port=port, controller_port=controller_port, login=login)


def redis_configuration(*, port: int, password: str, memory_megabytes: int) -> str:
    """`redis.conf` for Valkey and for Redis from 6.2. The server must start in its own directory."""
    return _REDIS.format(port=port, password=password, memory_megabytes=memory_megabytes)
