"""A worker of test_paused. It acquires the lock, prints its token, and then executes one command for each line of input:

guarded  checks the lease, then writes
bare     writes without a check
all      checks and writes repeatedly until that fails

With a third argument, the lease is one of a session, or that of a leader. It prints "written" after the first write, or the code of the error.
"""

import sys

from paddock import Paddock, PaddockError


def write(client, lease, guarded):
    if guarded:
        lease.check()
    client.write_fenced(lease.name, lock=lease.name, token=lease.token, value="by the worker")


def execute(client, lease, command):
    try:
        write(client, lease, command != "bare")
        print("written", flush=True)
        while command == "all":
            write(client, lease, True)
    except PaddockError as e:
        print(e.code, flush=True)


def acquire(client, name, kind):
    if kind == "leader":
        return client.election(name, ttl=2).campaign("the worker")
    return client.hold(name, session=client.hold_session(ttl=2)) if kind == "session" else client.hold(name, ttl=2)


def main(url, name, kind=""):
    client = Paddock(url)
    lease = acquire(client, name, kind)
    print(lease.token, flush=True)
    for line in sys.stdin:
        execute(client, lease, line.strip())


main(*sys.argv[1:])
