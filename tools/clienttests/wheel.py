"""The official Python SDK against a real server, or a cluster: wheel.py SERVER VERSION [services|all-role], or
against containers: wheel.py PROJECT VERSION containers.

Each step is one check; they build on each other. The server is killed in the middle and started
again on its data. Ends with "N passed, N failed".
"""

import asyncio
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import apache_iggy
from apache_iggy import AutoCommit, AutoCommitWhen, Consumer, IggyClient, PollingStrategy, SendMessage


class Server:
    """One server process and its data directory."""

    def __init__(self, binary, directory):
        self.binary, self.directory = os.path.abspath(binary), pathlib.Path(directory)
        self.log = open(self.directory / "log", "ab")

    def start(self):
        published = self.directory / "data" / "runtime" / "current_config.toml"
        published.unlink(missing_ok=True)
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("IGGY_", "WHIPPET_"))}
        environment |= {
            "IGGY_SYSTEM_PATH": str(self.directory / "data"),
            "IGGY_ROOT_USERNAME": "iggy",
            "IGGY_ROOT_PASSWORD": "iggy",
            "IGGY_TCP_ADDRESS": "127.0.0.1:0",
            "IGGY_QUIC_ADDRESS": "127.0.0.1:0",
            "IGGY_WEBSOCKET_ADDRESS": "127.0.0.1:0",
            "IGGY_HTTP_ADDRESS": "127.0.0.1:0",
            "WHIPPET_OPS_ADDRESS": "127.0.0.1:0",
        }
        self.process = subprocess.Popen([self.binary], env=environment, cwd=self.directory, stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + 60
        while not published.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the server did not start:\n" + (self.directory / "log").read_text()[-2000:])
            time.sleep(0.02)
        self.address = self.bound("tcp")

    def bound(self, section):
        text = (self.directory / "data" / "runtime" / "current_config.toml").read_text()
        return re.search(rf"\[{section}\]\n(?:[^\[]*\n)?address = '([^']+)'", text).group(1)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(10)

    def alive(self):
        return self.process.poll() is None

    def words(self):
        return (self.directory / "log").read_text()[-3000:]


class Cluster:
    """A cluster of three local processes of each kind. Clients know one front-door, or one node that follows."""

    def __init__(self, binary, directory, form):
        self.tool, self.directory, self.role = os.path.join(os.path.dirname(binary), "whippet"), pathlib.Path(directory), form
        self.roles = ["--all-role", "3"]
        if form == "services":
            self.role, self.roles = "front-door", ["--metadata", "3", "--partition", "3", "--front-door", "2"]

    def local(self, *words):
        words = [self.tool, "local", *words, "--dir", self.directory / "cluster", "--json"]
        return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)["processes"]

    def start(self):
        processes = self.local("up", *self.roles)
        self.known = next(p for p in processes if p["role"] == self.role and p["id"] == 1)
        self.address = self.known["tcp"]

    def bound(self, section):
        return self.known[section]

    def kill(self):
        for p in self.local("status"):
            if p["pid"]:
                os.kill(p["pid"], signal.SIGKILL)
        while any(p["pid"] for p in self.local("status")):
            time.sleep(0.02)

    def stop(self):
        return sum(p["pid"] for p in self.local("down"))

    def alive(self):
        return any(p["pid"] for p in self.local("status"))

    def words(self):
        return "\n".join(f"{log}\n{log.read_text()[-1500:]}" for log in sorted(self.directory.glob("cluster/*/log")))


class Containers:
    """A compose project that runs, named by its label. Clients know its second front-door, through the published ports."""

    PORTS = {"tcp": "8090/tcp", "quic": "8080/udp", "websocket": "8092/tcp"}

    def __init__(self, project):
        self.project = project
        self.ours = [c for service in ("metadata", "partition", "front-door") for c in self.containers(service)]

    def docker(self, *words):
        return subprocess.run(["docker", *words], check=True, capture_output=True, text=True).stdout

    def containers(self, service):
        label = "com.docker.compose.service"
        lines = self.docker("ps", "-a", "--filter", f"label=com.docker.compose.project={self.project}", "--format", f'{{{{.ID}}}} {{{{.Label "{label}"}}}}')
        return [id for id, name in (line.split() for line in lines.splitlines()) if name.startswith(service)]

    def states(self, field):
        return self.docker("inspect", "--format", "{{.State." + field + "}}", *self.ours).split()

    def start(self):
        self.docker("start", *self.ours)
        deadline = time.monotonic() + 120
        while set(self.states("Health.Status")) != {"healthy"}:
            if time.monotonic() > deadline:
                raise RuntimeError("not healthy:\n" + self.words())
            time.sleep(0.1)
        self.address = self.bound("tcp")

    def bound(self, section):
        (door,) = self.containers("front-door-1")
        return self.docker("port", door, self.PORTS[section]).splitlines()[0]

    def kill(self):
        self.docker("kill", *self.ours)

    def stop(self):
        self.docker("stop", *self.ours)
        return sum(map(int, self.states("ExitCode")))

    def alive(self):
        return "running" in self.states("Status")

    def words(self):
        return "\n".join(f"{c}\n{self.docker('logs', '--tail', '20', c)}" for c in self.ours)


class Checks:
    """The steps, in order. A method of the name check_* is one step."""

    def __init__(self, server):
        self.server = server

    async def connect(self):
        self.client = IggyClient(self.server.address)
        await self.client.connect()

    async def poll(self, strategy, count=10, commit=False, consumer=None, partition=0):
        consumer = consumer or Consumer.Single("reader")
        found = await self.client.poll_messages(
            "s1", "t1", consumer=consumer, polling_strategy=strategy, count=count, auto_commit=commit, partition_id=partition
        )
        return [(m.offset(), m.payload().decode()) for m in found]

    async def check_ping_before_login(self):
        await self.connect()
        await self.client.ping()

    async def check_wrong_password_is_refused(self):
        try:
            await self.client.login_user("iggy", "wrongpw")
        except RuntimeError as refusal:
            assert "nvalid credentials" in str(refusal), refusal
        else:
            raise AssertionError("a wrong password was accepted")

    async def check_login_on_the_same_connection(self):
        await self.client.login_user("iggy", "iggy")

    async def check_create(self):
        await self.client.create_stream("s1")
        await self.client.create_topic("s1", "t1", 3)
        stream, topic = await self.client.get_stream("s1"), await self.client.get_topic("s1", "t1")
        assert stream.name == "s1" and topic.name == "t1" and topic.partitions_count == 3, (stream, topic)

    async def check_durable_topic(self):
        if hasattr(apache_iggy, "Durability"):
            persisted = apache_iggy.Durability.PERSISTED
            await self.client.create_topic("s1", "t2", 1, durability=persisted, consumer_offset_durability=persisted)
            options = str((await self.client.get_topic("s1", "t2")).options)
            for key in ("durability", "consumer_offset_durability"):
                assert f'HeaderKey.String("{key}"): HeaderValue.String("persisted")' in options, options
        else:
            await self.client.create_topic("s1", "t2", 1, enforce_fsync=True)
        await self.client.send_messages("s1", "t2", 0, [SendMessage("kept")])

    async def check_other_transports(self):
        schemes = {"iggy+ws": "websocket", "iggy+quic": "quic"}
        if not hasattr(apache_iggy, "Durability"):
            del schemes["iggy+quic"]  # this generation's wheel opens no QUIC endpoint
        for scheme, section in schemes.items():
            client = IggyClient.from_connection_string(f"{scheme}://iggy:iggy@{self.server.bound(section)}")
            await client.connect()
            name = "over-" + section
            await client.create_stream(name)
            await client.create_topic(name, "t", 1)
            began = time.monotonic()
            for n in range(100):
                await client.send_messages(name, "t", 0, [SendMessage(f"m{n}")])
            assert time.monotonic() - began < 10
            await client.send_messages(name, "t", 0, [SendMessage("x" * 5_000_000)])
            found = await client.poll_messages(
                name, "t", consumer=Consumer.Single("reader"), polling_strategy=PollingStrategy.First(), count=200, auto_commit=False, partition_id=0
            )
            assert [m.payload().decode() for m in found] == [f"m{n}" for n in range(100)] + ["x" * 5_000_000], len(found)

    async def check_missing_things(self):
        assert await self.client.get_stream("none") is None
        assert await self.client.get_topic("s1", "none") is None
        try:
            await self.client.create_stream("s1")
        except RuntimeError:
            return
        raise AssertionError("a second stream of one name was created")

    async def check_describe_options(self):
        keys = {option.key for option in await self.client.describe_options("topic")}
        assert {"segment_size", "message_expiry", "max_topic_size"} <= keys, keys
        if hasattr(apache_iggy, "Durability"):
            assert {"durability", "consumer_offset_durability"} <= keys, keys
        else:
            assert "enforce_fsync" in keys, keys

    async def check_send(self):
        answer = await self.client.send_messages("s1", "t1", 0, [SendMessage(f"m{n}") for n in range(10)])
        (confirmed,) = answer.confirmations
        assert confirmed.partition_id == 0 and confirmed.base_offset == 0, confirmed

    async def check_partitioning(self):
        if not hasattr(apache_iggy, "Partitioning"):
            return
        to = apache_iggy.Partitioning
        for partitioning in (to.balanced(), to.partition_id(2)):
            answer = await self.client.send_messages("s1", "t1", partitioning, [SendMessage("elsewhere")])
            assert len(answer.confirmations) == 1
        answer = await self.client.send_messages("s1", "t1", to.messages_key("order-key-1"), [SendMessage("keyed")])
        assert answer.confirmations[0].partition_id == 222290145 % 3

    async def check_strategies(self):
        first = [(n, f"m{n}") for n in range(10)]
        assert (await self.poll(PollingStrategy.First()))[:10] == first
        assert (await self.poll(PollingStrategy.Offset(value=4), count=3)) == first[4:7]
        assert (await self.poll(PollingStrategy.Timestamp(value=1)))[:10] == first
        assert (await self.poll(PollingStrategy.Last(), count=2))[-1][0] >= 9
        assert await self.poll(PollingStrategy.Offset(value=1000)) == []

    async def check_next_advances_with_auto_commit(self):
        consumer = Consumer.Single("c1")
        for expected in (["m0", "m1"], ["m2", "m3"], ["m4", "m5"]):
            found = await self.poll(PollingStrategy.Next(), 2, True, consumer)
            assert [payload for _, payload in found] == expected, found

    async def check_group(self):
        await self.client.create_consumer_group("s1", "t1", "g1")
        await self.client.join_consumer_group("s1", "t1", "g1")
        group = await self.client.get_consumer_group("s1", "t1", "g1")
        assert group is not None and group.members_count == 1, group
        seen = []
        for _ in range(6):  # one partition per poll
            seen += await self.poll(PollingStrategy.Next(), 100, True, Consumer.Group("g1"), None)
        assert [p for _, p in seen if p.startswith("m")] == [f"m{n}" for n in range(10)], seen
        await self.client.leave_consumer_group("s1", "t1", "g1")

    async def check_consumer_helper(self):
        consumer = await self.client.consumer_group(
            "helper",
            "s1",
            "t1",
            polling_strategy=PollingStrategy.Next(),
            auto_commit=AutoCommit.When(AutoCommitWhen.ConsumingEachMessage()),
        )
        seen = set()
        async for message in consumer.iter_messages():
            seen.add(message.payload().decode())
            if {f"m{n}" for n in range(10)} <= seen:
                break
        await consumer.store_offset(0, 0)
        await consumer.delete_offset(0)

    async def check_producer_helper(self):
        if not hasattr(self.client, "producer"):
            return
        producer = await self.client.producer("s2", "t9")
        await producer.send([SendMessage("produced"), SendMessage("twice")])
        await producer.shutdown()
        topic = await self.client.get_topic("s2", "t9")
        assert topic is not None and topic.messages_count == 2, topic

    async def check_raw_request(self):
        if hasattr(self.client, "send_binary_request"):
            assert await self.client.send_binary_request(1, b"") == b""

    async def check_everything_survives_a_kill(self):
        before = await self.poll(PollingStrategy.First(), 100)
        self.server.kill()
        self.server.start()
        await self.connect()
        await self.client.login_user("iggy", "iggy")
        assert await self.poll(PollingStrategy.First(), 100) == before
        found = await self.poll(PollingStrategy.Next(), 2, True, Consumer.Single("c1"))
        assert [payload for _, payload in found] == ["m6", "m7"], found
        answer = await self.client.send_messages("s1", "t1", 0, [SendMessage("after")])
        assert answer.confirmations[0].base_offset == len(before), answer

    async def check_delete(self):
        await self.client.delete_topic("s1", "t1")
        assert await self.client.get_topic("s1", "t1") is None

    async def check_stop(self):
        assert self.server.stop() == 0


class Newer:
    """What a client of a later protocol is told."""

    def __init__(self, server):
        self.server = server

    async def check_login_names_the_versions(self):
        client = IggyClient(self.server.address)
        await client.connect()
        await client.ping()
        try:
            await client.login_user("iggy", "iggy")
        except RuntimeError as refusal:
            assert "client 0.12.0, server accepts [0.11.0, 0.11.0]" in str(refusal), refusal
        else:
            raise AssertionError("a client of protocol 0.12 was let in")


async def main(binary, version, form=""):
    passed = failed = 0
    with tempfile.TemporaryDirectory() as directory:
        if form == "containers":
            server = Containers(binary)
        else:
            server = Cluster(binary, directory, form) if form else Server(binary, directory)
        server.start()
        kind = Newer if version.startswith("0.9.1") else Checks
        checks = kind(server)
        for name in [name for name in vars(kind) if name.startswith("check_")]:
            try:
                await asyncio.wait_for(getattr(checks, name)(), 60)
                passed += 1
            except Exception:
                failed += 1
                print(f"FAIL {version} {form} {name}")
                traceback.print_exc(file=sys.stdout)
        if server.alive():
            server.kill()
        if failed:
            print(server.words())
    print(f"{passed} passed, {failed} failed", flush=True)
    os._exit(failed > 0)  # the SDK's threads need not wind down with the interpreter


asyncio.run(main(*sys.argv[1:]))
