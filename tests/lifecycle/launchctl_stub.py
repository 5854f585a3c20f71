#!/usr/bin/python3 -B
"""launchctl for hosts without launchd: bootstrap, bootout, kill and print of jobs that really run.

Each job has a supervisor of its own (a second process of this program) that reads the property list with plistlib and does what launchd does
with the keys that pods use: ProgramArguments, EnvironmentVariables and nothing of ours, RunAtLoad, KeepAlive {SuccessfulExit: false},
ThrottleInterval, ExitTimeOut, Umask, the log paths. Answers have the wording and the shape of macOS.

LAUNCHCTL_STUB: the directory of the domain. LAUNCHCTL_STUB_FAIL=VERB:STATUS:TEXT: one verb fails."""

import json
import os
import plistlib
import signal
import subprocess
import sys
import time

DOMAIN = os.environ["LAUNCHCTL_STUB"]


def state_file(label):
    return os.path.join(DOMAIN, label + ".json")


def read_state(label):
    try:
        with open(state_file(label), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return None


class Supervisor:
    def __init__(self, label, plist, path):
        self.label, self.plist, self.child, self.ending = label, plist, None, False
        self.state = {"supervisor": os.getpid(), "path": path, "arguments": plist["ProgramArguments"], "runs": 0, "code": None, "signal": None}
        self.tell("not running")

    def tell(self, word):
        self.state.update(word=word, pid=self.child.pid if self.child else None)
        new = state_file(self.label) + ".new"
        with open(new, "w", encoding="utf-8") as file:
            json.dump(self.state, file)
        os.rename(new, state_file(self.label))

    def spawn(self):
        def own_session():
            os.setsid()
            os.umask(self.plist.get("Umask", 0o022))

        environment = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "XPC_SERVICE_NAME": self.label}
        environment.update(self.plist.get("EnvironmentVariables", {}))
        with open(self.plist["StandardOutPath"], "ab") as out, open(self.plist["StandardErrorPath"], "ab") as err:
            self.child = subprocess.Popen(
                self.plist["ProgramArguments"], env=environment, cwd="/", stdin=subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=own_session
            )
        self.state["runs"] += 1
        self.tell("running")

    def on_term(self, *_):
        self.ending = True
        if self.child and self.child.poll() is None:
            os.killpg(self.child.pid, signal.SIGTERM)
            signal.alarm(self.plist.get("ExitTimeOut", 20))

    def on_alarm(self, *_):
        if self.child and self.child.poll() is None:
            os.killpg(self.child.pid, signal.SIGKILL)

    def one_run(self):
        """Returns whether launchd would start it again."""
        self.spawn()
        status = self.child.wait()
        self.child = None
        self.state.update(code=status if status >= 0 else None, signal=-status if status < 0 else None)
        again = status != 0 and self.plist["KeepAlive"] == {"SuccessfulExit": False}
        self.tell("spawn scheduled" if again else "not running")
        return again

    def run(self):
        signal.signal(signal.SIGTERM, self.on_term)
        signal.signal(signal.SIGALRM, self.on_alarm)
        again = self.plist["RunAtLoad"]
        while not self.ending:
            began = time.monotonic()
            again = again and self.one_run()
            while not self.ending and (not again or time.monotonic() - began < self.plist["ThrottleInterval"]):
                time.sleep(0.02)
        os.unlink(state_file(self.label))


def fail(status, *lines):
    print("\n".join(lines), file=sys.stderr)
    return status


def not_found(target):
    domain, _, label = target.rpartition("/")
    return fail(113, "Bad request.", f'Could not find service "{label}" in domain for user gui: {domain.rpartition("/")[2]}')


def bootstrap(domain, path):
    if domain != f"gui/{os.getuid()}":
        return fail(125, "Bootstrap failed: 125: Domain does not support specified action")
    with open(path, "rb") as file:
        plist = plistlib.load(file)
    label = plist["Label"]
    if read_state(label):
        return fail(5, "Bootstrap failed: 5: Input/output error")
    if os.fork() == 0:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)
        if os.fork() == 0:
            Supervisor(label, plist, path).run()
        os._exit(0)
    os.wait()
    while not read_state(label):
        time.sleep(0.01)
    return 0


def bootout(target):
    state = read_state(target.rpartition("/")[2])
    if not state:
        return fail(3, "Boot-out failed: 3: No such process")
    os.kill(state["supervisor"], signal.SIGTERM)
    return 0


def kill(word, target):
    state = read_state(target.rpartition("/")[2])
    if not state:
        return not_found(target)
    if state["pid"]:
        os.killpg(state["pid"], getattr(signal, word))
    return 0


def show(target):
    state = read_state(target.rpartition("/")[2])
    if not state:
        return not_found(target)
    lines = [f"active count = {1 if state['pid'] else 0}", f"path = {state['path']}", "type = LaunchAgent", f"state = {state['word']}", ""]
    lines += ["arguments = {", *("\t" + word for word in state["arguments"]), "}", "", f"domain = {target.rpartition('/')[0]} [100005]"]
    lines += [f"runs = {state['runs']}"] + ([f"pid = {state['pid']}"] if state["pid"] else [])
    if state["signal"]:
        lines.append(f"last terminating signal = {signal.strsignal(state['signal'])}: {state['signal']}")
    else:
        lines.append(f"last exit code = {'(never exited)' if state['code'] is None else state['code']}")
    lines += ["resource coalition = {", "\tstate = active", "}"]
    print(target + " = {")
    print("\n".join("\t" + line if line else "" for line in lines))
    print("}")
    return 0


VERBS = {"bootstrap": bootstrap, "bootout": bootout, "kill": kill, "print": show}


def main():
    verb, *words = sys.argv[1:]
    failing = os.environ.get("LAUNCHCTL_STUB_FAIL", "").split(":", 2)
    if failing[0] == verb:
        return fail(int(failing[1]), failing[2])
    return VERBS[verb](*words)


if __name__ == "__main__":
    sys.exit(main())
