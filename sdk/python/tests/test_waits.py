"""The cases that the clients for all languages have in common, on a clock that only the test moves."""

import json
import pathlib
import types
import unittest
from unittest import mock

from paddock import PaddockError
from paddock import _transport as transport

TABLE = pathlib.Path(__file__).parents[3] / "client/testdata/waits.json"


class Run:
    """Makes the calls of a case, and gives them their outcomes."""

    def __init__(self, addresses, calls):
        self.left, self.sent, self.ready, self.now = list(calls), [], "", 1000.0
        self.transport = transport.Transport([f"http://{host}" for host in "abc"[:addresses]], {}, None, transport.Key(None, {}))
        with mock.patch.object(transport.time, "monotonic", lambda: self.now), mock.patch.object(self.transport, "_attempt", self.attempt):
            while self.left:
                self.now += self.left[0].get("later_ms", 0) / 1000
                self.ready = self.left[0].get("ready", self.ready)
                self.wait("jobs")
                with self.transport._probing:  # until the earlier addresses were asked
                    pass

    def wait(self, name, **call):
        try:
            self.transport.exchange(types.SimpleNamespace(call=call, **vars(transport.Request("POST", name, None, 10.0, self.transport.waits.longest))))
        except (OSError, PaddockError):
            pass  # what it sends counts

    def attempt(self, address, request, limit):
        host = address.url[len("http://"):]
        if request.path == "/readyz":
            return response(200 if host in self.ready else 503)
        if request.path == "jobs":
            self.sent.append(f"{host} waits {request.wait * 1000:.0f} ms")
        call = request.call or (self.left.pop(0) if self.left else {"gets": "answer", "after_ms": 0})
        if call.get("beside"):  # they begin before this one ends, and end with it
            self.wait("beside", **{**call, "beside": call["beside"] - 1})
        else:
            self.now += call["after_ms"] / 1000
        if call["gets"] == "broken":
            raise ConnectionResetError
        if call["gets"] == "refused":
            raise transport.NotSent
        if call["gets"] == "silent":
            if limit != call["after_ms"] / 1000:
                self.sent.append(f"counts as silent after {limit:g} s")
            raise TimeoutError
        return response(200 if call["gets"] == "answer" else int(call["gets"]))


def response(status):
    headers = {} if status in (502, 504) else {"Paddock-Api": "v1"}
    return transport.Response(types.SimpleNamespace(status=status, headers=headers), b"")


class Waits(unittest.TestCase):
    def test_the_cases_of_all_clients(self):
        for case in json.loads(TABLE.read_text())["cases"]:
            with self.subTest(case["name"]):
                want = [f"{call['to']} waits {call['wait_ms']} ms" for call in case["calls"]]
                self.assertEqual(Run(case["addresses"], case["calls"]).sent, want)
