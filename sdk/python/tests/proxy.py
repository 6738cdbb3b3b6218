"""A TCP proxy that breaks connections as networks do."""

import contextlib
import socket
import threading


class Proxy:
    """A proxy in front of a service. Its mode can be changed while it runs:

    silent   connections stay open and are accepted, but no data is forwarded in either direction
    refuse   connections are closed, new ones immediately
    cut      the next responses are dropped and their connections closed, after the service has sent them
    """

    def __init__(self, target):
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open = set()
        self._changed = threading.Condition()
        self._mode, self._cut = "pass", 0
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def heal(self):
        self._set_mode("pass")

    def fall_silent(self):
        self._set_mode("silent")

    def refuse(self):
        self._set_mode("refuse")

    def drop(self):
        """Closes the connections. New ones are served."""
        with self._changed:
            self._close_all()

    def cut(self, responses):
        with self._changed:
            self._cut = responses

    def close(self):
        self._set_mode("refuse")
        self._listener.close()

    def _set_mode(self, mode):
        with self._changed:
            self._mode = mode
            self._changed.notify_all()
            if mode == "refuse":
                self._close_all()

    def _close_all(self):
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
            with self._changed:
                self._open.update((near, far))
            try:
                back = threading.Thread(target=self._pump, args=(far, near, True), daemon=True)
                back.start()
                self._pump(near, far, False)
                back.join()
            finally:
                with self._changed:
                    self._open.difference_update((near, far))

    def _pump(self, source, sink, responses):
        with contextlib.suppress(OSError):
            while True:
                data = source.recv(65536)
                if not data or not self._forwards(responses):
                    break
                sink.sendall(data)
        for sock in (source, sink):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _forwards(self, response):
        """Waits while the proxy is silent; reports whether to forward the data."""
        with self._changed:
            self._changed.wait_for(lambda: self._mode != "silent")
            if response and self._cut > 0:
                self._cut -= 1
                return False
            return self._mode == "pass"
