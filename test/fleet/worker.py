"""A worker of the fleet with the Python SDK: threads, or asyncio if the first argument says so. See doc.go."""

import asyncio
import sys
import threading

import paddock
import paddock.aio

kind, url, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
name = kind
say_lock = threading.Lock()


def say(text: str) -> None:
    with say_lock:
        print(text, flush=True)


def with_threads() -> None:
    client = paddock.Paddock(base_urls=url.split(","))

    def lost(what: str):
        return lambda error: say(f"lost {what}: {error}")

    def wait(i: int) -> None:
        try:
            with client.hold(f"{name}:queue", wait=None, ttl=15, holder=str(i), on_lost=lost(f"turn {i}")):
                say(f"turn {i}")
        except paddock.PaddockError as error:
            say(f"lost turn {i}: {error}")

    held = [client.hold(f"{name}:held:{i}", ttl=15, retry=30, on_lost=lost(f"{name}:held:{i}")) for i in range(size)]
    say("held")
    waiters = [threading.Thread(target=wait, args=(i,)) for i in range(size)]
    for waiter in waiters:
        waiter.start()
    sys.stdin.read()
    for lease in held:
        lease.release()
    for waiter in waiters:
        waiter.join()


async def with_tasks() -> None:
    async with paddock.aio.Paddock(base_urls=url.split(",")) as client:
        stop = asyncio.Event()

        async def hold(i: int) -> None:
            try:
                async with client.hold(f"{name}:held:{i}", ttl=15, retry=30):
                    holding.append(i)
                    if len(holding) == size:
                        say("held")
                    await stop.wait()
            except paddock.PaddockError as error:
                say(f"lost {name}:held:{i}: {error}")

        async def wait(i: int) -> None:
            try:
                async with client.hold(f"{name}:queue", wait=None, ttl=15, holder=str(i)):
                    say(f"turn {i}")
            except paddock.PaddockError as error:
                say(f"lost turn {i}: {error}")

        holding: list = []
        work = [asyncio.ensure_future(task(i)) for i in range(size) for task in (hold, wait)]
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        stop.set()
        await asyncio.gather(*work)


if kind == "asyncio":
    asyncio.run(with_tasks())
else:
    with_threads()
