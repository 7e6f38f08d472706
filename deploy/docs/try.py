"""Create a stream and a topic, send ten messages and read them back, with the official Python SDK.

    pip install apache-iggy==0.9.0
    IGGY_PASSWORD="$(cat data/root-password)" python deploy/docs/try.py
"""

import asyncio
import os

from apache_iggy import Consumer, IggyClient, Partitioning, PollingStrategy, SendMessage

ADDRESS = os.environ.get("IGGY_ADDRESS", "127.0.0.1:8090")
USERNAME = os.environ.get("IGGY_USERNAME", "iggy")
PASSWORD = os.environ.get("IGGY_PASSWORD", "iggy")


async def main():
    client = IggyClient(ADDRESS)
    await client.connect()
    await client.login_user(USERNAME, PASSWORD)
    if await client.get_stream("try") is None:
        await client.create_stream("try")
    if await client.get_topic("try", "events") is None:
        await client.create_topic("try", "events", partitions_count=1)
    sent = [SendMessage(f"message {n}") for n in range(10)]
    await client.send_messages("try", "events", Partitioning.partition_id(0), sent)
    received = await client.poll_messages(
        "try",
        "events",
        consumer=Consumer.Single("try"),
        polling_strategy=PollingStrategy.Last(),
        count=10,
        auto_commit=False,
        partition_id=0,
    )
    for message in received:
        print(message.offset(), message.payload().decode())


asyncio.run(main())
