"""How much memory a whole job holds at its highest: this process and all that it starts."""

import threading

import psutil


class PeakMemory:
    """Samples the resident memory of the process tree while the `with` block runs.

    `peak` is in bytes, the highest sum seen; pages that processes share are counted in each of them.
    """

    def __init__(self, interval: float = 0.2) -> None:
        self.peak = 0
        self._interval = interval
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        root = psutil.Process()
        while not self._done.wait(self._interval):
            total = 0
            for process in [root, *root.children(recursive=True)]:
                try:
                    total += process.memory_info().rss
                except psutil.NoSuchProcess:
                    continue
            self.peak = max(self.peak, total)

    def __enter__(self) -> "PeakMemory":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._done.set()
        self._thread.join()
