"""Whether the machine stood still. A virtual one is held for seconds now and then while its clock goes on: every budget under way is over then, and
nothing is learnt from what was wrong."""

import threading
import time

BEAT, STANDSTILL = 0.1, 1.0


class _Heart(threading.Thread):
    """Beats ten times a second, and notes when it could not for a second."""

    def __init__(self):
        super().__init__(daemon=True)
        self.missed = float("-inf")
        self.start()

    def run(self):
        last = time.monotonic()
        while True:
            time.sleep(BEAT)
            now = time.monotonic()
            if now - last > STANDSTILL:
                self.missed = now
            last = now


_heart = _Heart()


def stood_still_since(began):
    time.sleep(2 * BEAT) # it may not have noticed yet
    return _heart.missed > began
