"""A TCP proxy that breaks connections in the ways in which networks do."""

import contextlib
import socket
import threading


class Proxy:
    """Stands before a service. What it does is changed while it runs:

    silent   connections stay open and are accepted, and nothing goes through any more, either way
    refuse   connections are cut, new ones at once
    cut      so many answers are thrown away, and their connections cut, once the service has given them
    """

    def __init__(self, target):
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open = set()
        self._gate = threading.Condition()
        self._mode, self._cut = "pass", 0
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def heal(self):
        self._become("pass")

    def fall_silent(self):
        self._become("silent")

    def refuse(self):
        self._become("refuse")

    def cut(self, answers):
        with self._gate:
            self._cut = answers

    def close(self):
        self._become("refuse")
        self._listener.close()

    def _become(self, mode):
        with self._gate:
            self._mode = mode
            self._gate.notify_all()
            if mode == "refuse":
                for sock in self._open:
                    with contextlib.suppress(OSError):
                        sock.shutdown(socket.SHUT_RDWR)

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near):
        with near, contextlib.suppress(OSError), socket.create_connection(self._target) as far:
            with self._gate:
                self._open.update((near, far))
            try:
                back = threading.Thread(target=self._pump, args=(far, near, True), daemon=True)
                back.start()
                self._pump(near, far, False)
                back.join()
            finally:
                with self._gate:
                    self._open.difference_update((near, far))

    def _pump(self, source, sink, answers):
        with contextlib.suppress(OSError):
            while True:
                data = source.recv(65536)
                if not data or not self._passes(answers):
                    break
                sink.sendall(data)
        for sock in (source, sink):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _passes(self, answer):
        """Waits while the proxy is silent; returns whether data go on."""
        with self._gate:
            self._gate.wait_for(lambda: self._mode != "silent")
            if answer and self._cut > 0:
                self._cut -= 1
                return False
            return self._mode == "pass"
