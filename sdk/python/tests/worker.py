"""A worker of test_paused. It takes the lock, says its token, and then does what it is told, line by line:

guarded  looks whether the lease is lost, then writes
bare     writes without looking
all      writes, guarded, for as long as it can; it says that it is at it

It says "written", or the code of the error.
"""

import sys

from paddock import Paddock, PaddockError


def write(client, lease, guarded):
    if guarded:
        lease.check()
    client.write_fenced(lease.name, lock=lease.name, token=lease.token, value="by the worker")


def obey(client, lease, order):
    try:
        write(client, lease, order != "bare")
        print("written", flush=True)
        while order == "all":
            write(client, lease, True)
    except PaddockError as e:
        print(e.code, flush=True)


def main(url, name):
    client = Paddock(url)
    lease = client.hold(name, ttl=2)
    print(lease.token, flush=True)
    for line in sys.stdin:
        obey(client, lease, line.strip())


main(*sys.argv[1:])
