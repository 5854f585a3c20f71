"""Completion in the real shells: verbs, flags and values from the program's table, names from its records. bash and zsh are typed at through a
terminal, fish is asked. A shell that is not there is a skip, and a failure with MUST_WORK=1."""

import contextlib
import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "lifecycle"))
from plane import BIN, SOURCE, PlaneTest, skip  # noqa: E402

SCRIPTS = os.path.join(SOURCE, "completion")
PROMPT = "ready> "


class Terminal:
    """A shell at a terminal of its own: what is typed, and what then stands on the screen."""

    def __init__(self, words, env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(words[0], words, {**env, "TERM": "dumb", "COLUMNS": "200", "LINES": "50"})
        self.seen = ""

    def type(self, text):
        os.write(self.fd, text.encode())

    @property
    def screen(self):
        """Without bells and escape sequences, a backspace taken for what it is."""
        shown = []
        for char in re.sub(r"\x07|\x1b\[[?0-9;]*[a-zA-Z]|\x1b[=>]", "", self.seen):
            if char == "\b" and shown:
                shown.pop()
            else:
                shown.append(char)
        return "".join(shown)

    def read_until(self, pattern, seconds=20):
        end = time.monotonic() + seconds
        while not re.search(pattern, self.screen):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise AssertionError(f"{pattern!r} did not appear in {self.screen!r}")
            self.seen += os.read(self.fd, 65536).decode(errors="replace")

    def close(self):
        with contextlib.suppress(OSError):
            os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


class Completion(PlaneTest):
    def setUp(self):
        super().setUp()
        bin_dir = os.path.join(self.dir, "bin")
        os.mkdir(bin_dir)
        os.symlink(BIN, os.path.join(bin_dir, "kirocrew-pod"))
        self.env["PATH"] = f"{bin_dir}:{self.env['PATH']}"
        self.env["HOME"] = self.dir
        os.mkdir(self.pods_dir, 0o700)
        for name in ("alpha", "alphabet", "beta"):
            with open(os.path.join(self.pods_dir, f"{name}.env"), "w") as record:
                record.write(f"PORT='{self.base_port + 1}'\nBACKEND='embedded'\nEXEC='[\"/bin/sleep\",\"1000\"]'\nHEALTH='none'\n")
        os.makedirs(os.path.join(self.root, "merely-a-directory"))
        os.makedirs(os.path.join(self.dir, "some-directory"))

    def complete(self, *words):
        result = self.pod("_complete", "--", *words)
        self.assertEqual((result.status, result.err), (0, ""), result)
        return [line.split("\t")[0] for line in result.out.splitlines()]

    # --- what the program says ---------------------------------------------------------------------------------------------

    def test_verbs(self):
        shown = re.findall(r"(?m)^  ([a-z]+) ", self.pod("--help").out)
        self.assertEqual(self.complete(""), shown)
        self.assertEqual(self.complete("sta"), ["status"])
        self.assertEqual(self.complete("--"), ["--config", "--version", "--help"])
        self.assertEqual(self.complete("--config", ""), [":files"])
        self.assertEqual(self.complete("nonsense", ""), [])

    def test_flags_are_those_of_help(self):
        for verb in self.complete(""):
            shown = re.findall(r"(?m)^  (?:-., |    )(--[a-z-]+)", self.pod(verb, "--help").out)
            self.assertEqual(sorted(self.complete(verb, "-")), sorted(shown))
        self.assertNotIn("--json", self.complete("ls", "--json", "-"))
        self.assertIn("--state", self.complete("ls", "--state", "up", "-"))
        self.assertIn("--env", self.complete("mcp", "add", "alpha", "x", "--env", "A=1", "-"))

    def test_values(self):
        self.assertEqual(self.complete("up", "x", "--backend", ""), ["auto", "systemd", "launchd", "embedded"])
        self.assertEqual(self.complete("up", "x", "--backend=em"), ["--backend=embedded"])
        self.assertEqual(self.complete("up", "x", "--backend", "=", "em"), ["embedded"])
        self.assertEqual(self.complete("up", "x", "--backend", "="), ["auto", "systemd", "launchd", "embedded"])
        self.assertEqual(self.complete("up", "x", "--checkout", ""), [":directories"])
        self.assertEqual(self.complete("up", "x", "--seed", "min"), ["minimal", ":directories"])
        for state in self.complete("ls", "--state", ""):
            self.assertEqual(self.pod("ls", "--state", state).status, 0)
        self.assertEqual(self.complete("ls", "--state", "un"), ["unfinished"])
        self.assertEqual(self.complete("run", "alpha", ""), ["--"])
        self.assertEqual(self.complete("logs", "-n", "5", "alph"), ["alpha", "alphabet"])
        for flag, verb in (("--backend", "up"), ("--approval", "up"), ("--health", "up"), ("--for", "render")):
            for value in self.complete(verb, flag, ""):
                result = self.pod(verb, "--help", flag, value)
                self.assertEqual(result.status, 0)

    def test_every_offered_backend_and_approval_is_known(self):
        for value in self.complete("up", "--approval", ""):
            self.assertNotIn("--approval", self.pod("up", "no/name", "--approval", value).err)
        for value in self.complete("mcp", ""):
            self.assertNotIn("does add", self.pod("mcp", value, "alpha", "x", "--", "/bin/true").err)

    def test_names(self):
        self.assertEqual(self.complete("down", ""), ["alpha", "alphabet", "beta"])
        self.assertEqual(self.complete("down", "alpha", "alpha"), ["alphabet"])
        self.assertEqual(self.complete("url", "alpha", ""), [])
        self.assertEqual(self.complete("up", "alpha", ""), ["--"])
        self.assertEqual(self.complete("exec", "alpha", "--", ""), [":commands"])
        self.assertEqual(self.complete("exec", "alpha", "--", "sh", ""), [":files"])
        config = os.path.join(self.dir, "other.ini")
        with open(config, "w") as text:
            text.write(f"[plane]\nenv-dir = {self.dir}/other\n")
        del self.env["KIROCREW_POD_ENV_DIR"]
        self.assertEqual(self.complete("--config", config, "down", ""), [])

    def test_servers(self):
        settings = os.path.join(self.home("alpha"), "kiro", "settings")
        os.makedirs(settings)
        with open(os.path.join(settings, "mcp.json"), "w") as text:
            json.dump({"mcpServers": {"notes": {"command": "/bin/true"}, "not a word; rm": {"command": "/bin/true"}}}, text)
        self.assertEqual(self.complete("mcp", "rm", "alpha", ""), ["notes"])
        self.assertEqual(self.complete("probe", "alpha", ""), ["notes"])

    def test_a_broken_plane_offers_nothing_and_says_nothing(self):
        self.env["KIROCREW_POD_BASE_PORT"] = "nonsense"
        self.assertEqual(self.complete("down", ""), [])

    # --- the shells -----------------------------------------------------------------------------------------------------------

    def shell(self, name):
        if not shutil.which(name, path=self.env["PATH"]):
            skip(self, f"{name} is not installed")
        return name

    def test_bash_function(self):
        """As readline calls it, with the line split at COMP_WORDBREAKS."""
        script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _kirocrew_pod; printf "%s\\n" "${COMPREPLY[@]}"'

        def ask(*words):
            done = subprocess.run([self.shell("bash"), "--norc", "-c", script, "sh", f"{SCRIPTS}/kirocrew-pod.bash", "kirocrew-pod", *words], env=self.env, cwd=self.dir, stdout=subprocess.PIPE, check=True)
            return done.stdout.decode().split()

        self.assertEqual(ask("down", "alph"), ["alpha", "alphabet"])
        self.assertEqual(ask("up", "x", "--backend", "=", "sy"), ["systemd"])
        self.assertIn("some-directory", ask("up", "x", "--checkout", "some"))
        self.assertIn("sleep", ask("exec", "alpha", "--", "slee"))

    def check_at_terminal(self, terminal):
        """What is offered, is what stands on the line after a tab; an answer that is the only one is completed."""
        self.addCleanup(terminal.close)
        terminal.read_until(re.escape(PROMPT))
        for typed, then in (
            ("kirocrew-pod sta\t", "kirocrew-pod status "),
            ("bet\t", "kirocrew-pod status beta "),
            ("--js\t", "kirocrew-pod status beta --json "),
        ):
            terminal.type(typed)
            terminal.read_until(re.escape(then))
        terminal.type("\x15")
        terminal.type("kirocrew-pod down al\t")
        terminal.read_until("kirocrew-pod down alpha")
        terminal.type("\t\t")
        terminal.read_until("alphabet")

    def test_bash_at_a_terminal(self):
        rc = os.path.join(self.dir, "rc")
        with open(rc, "w") as text:
            text.write(f"PS1='{PROMPT}'\nbind 'set enable-bracketed-paste off'\nbind 'set bell-style none'\nsource {SCRIPTS}/kirocrew-pod.bash\n")
        self.check_at_terminal(Terminal([self.shell("bash"), "--noprofile", "--rcfile", rc, "-i"], self.env))

    def test_bash_completion_loads_it_by_itself(self):
        if not os.path.exists("/usr/share/bash-completion/bash_completion"):
            skip(self, "bash-completion is not installed")
        completions = os.path.join(self.dir, "data", "bash-completion", "completions")
        os.makedirs(completions)
        shutil.copy(f"{SCRIPTS}/kirocrew-pod.bash", os.path.join(completions, "kirocrew-pod"))
        rc = os.path.join(self.dir, "rc")
        with open(rc, "w") as text:
            text.write(f"PS1='{PROMPT}'\nbind 'set enable-bracketed-paste off'\nXDG_DATA_DIRS={self.dir}/data\nsource /usr/share/bash-completion/bash_completion\n")
        self.check_at_terminal(Terminal([self.shell("bash"), "--noprofile", "--rcfile", rc, "-i"], self.env))

    def test_zsh_at_a_terminal(self):
        with open(os.path.join(self.dir, ".zshrc"), "w") as text:
            text.write(f"PROMPT='{PROMPT}'\nPROMPT_EOL_MARK=\nunsetopt zle_bracketed_paste 2>/dev/null\nfpath=({SCRIPTS} $fpath)\nautoload -U compinit\ncompinit -u -D\n")
        self.env["ZDOTDIR"] = self.dir
        self.check_at_terminal(Terminal([self.shell("zsh"), "-d", "-i"], self.env))

    def test_fish(self):
        def ask(line):
            words = [self.shell("fish"), "--no-config", "-c", f"source {SCRIPTS}/kirocrew-pod.fish; complete -C {json.dumps(line)}"]
            done = subprocess.run(words, env=self.env, cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
            self.assertEqual(done.stderr, b"")
            return [row.split("\t")[0] for row in done.stdout.decode().splitlines()]

        self.assertEqual(sorted(ask("kirocrew-pod down ")), ["alpha", "alphabet", "beta"])
        self.assertEqual(ask("kirocrew-pod sta"), ["status"])
        self.assertEqual(sorted(ask("kirocrew-pod up x --backend ")), ["auto", "embedded", "launchd", "systemd"])
        self.assertEqual(ask("kirocrew-pod up x --backend=sy"), ["--backend=systemd"])
        self.assertIn("some-directory/", ask("kirocrew-pod up x --checkout some"))
        self.assertIn("sleep", ask("kirocrew-pod exec alpha -- slee"))


if __name__ == "__main__":
    unittest.main()
