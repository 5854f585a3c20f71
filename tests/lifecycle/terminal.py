"""A program on a terminal of a given size: what it writes there, and what a person would see."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Terminal:
    """Standard output, and with `both` standard error, are the terminal; standard input is empty."""

    def __init__(self, words, env, cwd, columns=80, lines=24, both=False):
        self.master, slave = pty.openpty()
        self.resize(columns, lines)
        self.process = subprocess.Popen(
            words, env={"TERM": "xterm", **env}, cwd=cwd, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave if both else subprocess.PIPE, close_fds=True
        )
        os.close(slave)
        self.written = b""

    def resize(self, columns, lines):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        if hasattr(self, "process"):
            self.process.send_signal(signal.SIGWINCH)

    def read(self, seconds):
        """What comes within that time."""
        end = time.monotonic() + seconds
        before = len(self.written)
        with contextlib.suppress(OSError):
            while time.monotonic() < end and select.select([self.master], [], [], max(0, end - time.monotonic()))[0]:
                more = os.read(self.master, 65536)
                if not more:
                    break
                self.written += more
        return self.written[before:].decode().replace("\r\n", "\n")

    def end(self, seconds=30):
        """Everything that was written, when the program has ended."""
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.05)
        self.read(0.1)
        return self.written.decode().replace("\r\n", "\n")

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.process.stderr:
            self.process.stderr.close()
        os.close(self.master)


def plain(text):
    return COLOUR.sub("", text)
