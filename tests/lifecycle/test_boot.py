"""Boot: the agent is proven before the payload starts, and a refusal can be read and ends."""

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import time
import unittest

from behind import SLEEP
from checkouts import FAKE_AGENT, CheckoutTest
from plane import BACKEND, alive, tree_manifest

RESTART_SECS = 5
# verdict, what the detail says, the agent's words. Those of `dead` are for `up` too.
GOES_ON = (
    ("viable", "", ("at-once",)),
    ("viable", "did not answer", ("never",)),
    ("viable", "ended with status 0", ("exit", "0")),
    ("signed-out", "not logged in", ("exit", "1", "error: You are not logged in")),
    ("signed-out", "not logged in", ("exit", "1", "please run `kiro-cli login` first")),
    ("signed-out", "not logged in", ("exit", "7", "Bitte zuerst anmelden")),
)
DEAD = (
    ("exit status 3", ("exit", "3", "a library is missing")),
    ("signal 11", ("signal", "11")),
)


class Agent(CheckoutTest):
    def probe_agent(self, name="a", status=0):
        result = self.pod("probe", name, "--agent", "--json")
        self.assertEqual(result.status, status, result)
        self.assertEqual((result.json["name"], result.json["mcp"]), (name, []))
        return result.json["agent"]

    def test_the_verdicts_that_let_boot_go_on(self):
        for number, (verdict, detail, words) in enumerate(GOES_ON):
            name = f"p{number}"
            self.agent(*words, timeout="1" if words == ("never",) else "20")
            report = self.raised(name)
            self.assertEqual(self.get(report["port"], "/api/health")[0], 200)
            said = [line for line in self.pod("logs", name).out.splitlines() if "agent: " in line]
            self.assertEqual(len(said), 1 if detail else 0, (words, said))
            self.assertIn(detail and f"agent: {verdict}: ", said[0] if said else "")
            self.assertIn(detail, said[0] if said else "")
            agent = self.probe_agent(name)
            self.assertEqual((agent["verdict"], agent["child"], agent["home"]), (verdict, FAKE_AGENT, report["os_home"]))
            self.assertIn(detail, agent["detail"])
            self.assertGreaterEqual(agent["ms"], 1000 if words == ("never",) else 0)
            self.down(name)
            self.assert_no_residue(report["id"])

    def test_no_such_agent_on_this_host_is_one_line_and_goes_on(self):
        self.agent(program="kiro-cli-that-nobody-has")
        self.raised()
        said = [line for line in self.pod("logs", "a").out.splitlines() if "agent: " in line]
        self.assertEqual(len(said), 1, said)
        self.assertIn("agent: unavailable: ", said[0])
        self.assertIn("kiro-cli-that-nobody-has", said[0])
        agent = self.probe_agent()
        self.assertEqual((agent["verdict"], agent["child"]), ("unavailable", ""))

    def test_the_default_agent_is_kiro_cli_acp_of_the_planes_path(self):
        private = os.path.join(self.dir, "bin")
        os.makedirs(private)
        program = os.path.join(private, "kiro-cli")
        with open(program, "w") as script:
            script.write(f"#!/bin/sh\n[ \"$*\" = acp ] || exit 9\nexec {FAKE_AGENT} at-once\n")
        os.chmod(program, 0o755)
        self.env["KIROCREW_POD_PATH"] = f"{private}:/usr/bin:/bin"
        self.raised()
        agent = self.probe_agent()
        self.assertEqual((agent["verdict"], agent["child"]), ("viable", program))

    def test_a_command_payload_has_an_agent_only_if_an_ini_names_one(self):
        self.quiet("a")
        none = self.pod("probe", "a", "--agent")
        self.assertEqual(none.status, 2, none)
        self.assertIn("agent", self.one_line(none))
        self.down("a")
        config = os.path.join(self.dir, "config.ini")
        with open(config, "w") as ini:
            ini.write(f"[agent]\nexec = {FAKE_AGENT} exit 5 'command payloads too'\n")
        refused = self.pod("up", "b", "--health", "none", "--", *SLEEP, config=config)
        self.assertEqual(refused.status, 78, refused)
        self.assertIn("command payloads too", refused.err)

    def test_a_dead_agent_fails_up_with_its_last_words_and_is_shown_until_a_good_boot(self):
        for number, (how, words) in enumerate(DEAD):
            name = f"d{number}"
            self.agent(*words)
            refused = self.refused(name)
            self.assertEqual(refused.out, "")
            tail = words[2] if len(words) > 2 else "about to die"
            os_home = os.path.join(self.home(name), "os-home")
            for text in (how, tail, FAKE_AGENT, os_home, "the agent cannot start"):
                self.assertIn(text, refused.err)
            listed = self.ls()[name]
            self.assertEqual(listed["state"], "refused")
            for text in (how, tail, FAKE_AGENT, os_home, "the agent cannot start"):
                self.assertIn(text, listed["reason"])
            self.assertIn(tail, self.pod("status", name).out)
            self.assertIn(tail, self.pod("ls").out)
            with open(self.note(name)) as note:
                code, sentence = note.read().split("\n", 1)
            self.assertEqual((code, sentence.strip()), ("agent-dead", listed["reason"]))
            self.assertEqual(stat.S_IMODE(os.lstat(self.note(name)).st_mode), 0o600)
            self.assertFalse(os.path.exists(self.home(name)), "the home that this call made")
        self.agent("at-once")
        report = self.raised("d0")
        self.assertFalse(os.path.lexists(self.note("d0")))
        self.assertEqual((self.ls()["d0"]["state"], self.ls()["d0"]["reason"]), ("up", None))
        self.down("d1")
        self.assertFalse(os.path.lexists(self.note("d1")))
        self.down("d0")
        self.assert_no_residue(report["id"])
        self.assertEqual(self.ls(), {})

    def test_an_agent_that_cannot_be_executed_is_dead(self):
        wrong = os.path.join(self.dir, "wrong")
        with open(wrong, "w") as script:
            script.write("#!/no/such/interpreter\n")
        for mode, text in ((0o755, "/no/such/interpreter"), (0o644, "cannot be executed")):
            os.chmod(wrong, mode)
            self.agent(program=wrong)
            refused = self.refused()
            self.assertIn(text, refused.err)
            self.assertIn(text, self.ls()["a"]["reason"])

    def test_the_last_500_characters_of_stderr_reach_the_note(self):
        for letter in ("x", "€"):
            words = f"GONE {letter * 490} THE END"
            self.agent_that_says(words + "\n", 1)
            tail = (words + "\n")[-500:].strip()
            refused = self.refused()
            self.assertIn(tail, refused.err)
            self.assertNotIn("GONE", refused.err)
            self.assertIn(tail, self.ls()["a"]["reason"])
            with open(self.note()) as note:
                self.assertIn(tail, note.read())

    def test_an_agent_that_dies_later_is_seen_by_the_probe_and_does_not_disturb_the_pod(self):
        self.agent("at-once")
        report = self.raised()
        self.agent("exit", "4", "worn out")
        agent = self.probe_agent(status=1)
        self.assertEqual(agent["verdict"], "dead")
        self.assertIn("worn out", agent["detail"])
        text = self.pod("probe", "a", "--agent")
        self.assertEqual(text.status, 1, text)
        self.assertIn("dead", text.out)
        self.assertIn("worn out", text.out)
        self.assertTrue(alive(report["pid"]))
        self.assertFalse(os.path.lexists(self.note()))

    def test_control_characters_of_the_agent_never_reach_the_terminal(self):
        self.agent_that_says("\x1b[2J\x07evil", 1)
        refused = self.refused()
        for shown in (refused.err, self.pod("ls").out, self.pod("status", "a").out, self.pod("ls", "--json").out):
            self.assertNotIn("\x1b", shown)
            self.assertNotIn("\x07", shown)
            self.assertIn("evil", shown)

    def test_what_the_agent_started_is_gone_before_the_payload_starts(self):
        held = os.path.join(self.dir, "daemon")
        self.agent("daemon", held)
        report = self.raised()
        self.assertTrue(os.path.exists(held))
        for pid in self.processes_of(report["id"]):
            with contextlib.suppress(OSError):
                self.assertNotEqual(os.path.realpath(f"/proc/{pid}/exe"), os.path.realpath(FAKE_AGENT))

    def test_the_agent_cannot_write_in_run(self):
        self.agent("writes-run", os.path.join(self.home("a"), "run", "written"))
        report = self.raised()
        self.assertEqual(self.probe_agent()["verdict"], "viable")
        self.assertFalse(os.path.exists(os.path.join(report["home"], "run", "written")))

    def test_V07_an_agent_that_answers_after_15_seconds_is_viable(self):
        self.agent("slow", "15000", timeout="20")
        report = self.raised("a", "--wait-secs", "60")
        self.assertGreaterEqual(report["ready_ms"], 15000)
        self.assertNotIn("agent: ", self.pod("logs", "a").out)
        self.assertEqual(self.ls()["a"]["state"], "up")

    def test_V08_an_agent_of_many_names_finds_its_siblings(self):
        private = os.path.join(self.dir, "bin")
        os.makedirs(private)
        link = os.path.join(private, "many-names")
        os.symlink(FAKE_AGENT, link)
        open(os.path.join(private, "sibling"), "w").close()
        outside = subprocess.run([link, "argv0", "many-names"], stdout=subprocess.PIPE, timeout=30,
                                 input=b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n', check=False,
                                 preexec_fn=lambda: signal.alarm(3))
        self.assertIn(b'"protocolVersion":1', outside.stdout)
        self.env["KIROCREW_POD_PATH"] = f"{private}:/usr/bin:/bin"
        for program in (link, "many-names"):
            self.agent("argv0", "many-names", program=program)
            self.raised()
            agent = self.probe_agent()
            self.assertEqual((agent["verdict"], agent["detail"], agent["child"]), ("viable", "", link))
            self.down("a")
        # Without its sibling it ends as it would outside.
        os.unlink(os.path.join(private, "sibling"))
        self.assertIn("exit status 96", self.refused().err)

    def test_X46_without_a_sandbox_the_agent_is_not_run_and_boot_refuses(self):
        ran = os.path.join(self.dir, "ran")
        self.agent("at-once")
        self.stopped()
        self.agent("-c", f"echo x >>{ran}; exit 3", program="/bin/sh")
        hide = "for d in /usr/bin /bin /usr/local/bin; do [ ! -e $d/bwrap ] || mount --bind /dev/null $d/bwrap; done; exec \"$@\""
        status, _, err = self.in_mounts(hide, *self.command("_run", "a"))
        self.assertEqual(status, 78, err)
        self.assertIn("bwrap", err)
        self.assertFalse(os.path.exists(ran))
        self.assertIn("bwrap", self.ls()["a"]["reason"])
        refused = self.refused()
        self.assertTrue(os.path.exists(ran), refused)
        self.assertIn("exit status 3", refused.err)


class Refusals(CheckoutTest):
    def test_V01_each_terminal_status_is_one_start(self):
        """One start, no restart, over more than two restart intervals; failed with the code."""
        starts = os.path.join(self.dir, "starts")
        self.agent("at-once")
        reports = {name: self.raised(name) for name in ("live", "gone")}
        record = os.path.join(self.pods_dir, "live.env")
        with open(record) as text:
            lines = [line for line in text.read().splitlines() if not line.startswith(("PORT=", "PORT_AUTO="))]
        with open(record, "w") as text:
            text.write("\n".join([*lines, f"PORT='{self.env.get('KIROCREW_POD_LIVE_PORT', '5476')}'", ""]))
        self.boot_again("live", reports["live"]["pid"])
        self.eventually(lambda: self.state("live") == "refused", seconds=30, what="the refusal of the live port")
        os.rename(os.path.join(self.tree, ".venv"), os.path.join(self.tree, ".gone"))
        self.boot_again("gone", reports["gone"]["pid"])
        self.eventually(lambda: self.state("gone") == "refused", seconds=30, what="the refusal of a payload that is gone")
        os.rename(os.path.join(self.tree, ".gone"), os.path.join(self.tree, ".venv"))
        self.agent("-c", f"echo x >>{starts}; exit 3", program="/bin/sh")
        self.refused("dead")
        time.sleep(2 * RESTART_SECS + 1.5)
        with open(starts) as text:
            self.assertEqual(text.read(), "x\n")
        for name, status, sentence in (("dead", 78, "the agent cannot start"), ("live", 70, "a pod never binds the live port"),
                                       ("gone", 3, "the payload cannot be executed")):
            self.assertEqual(self.ls()[name]["state"], "refused")
            self.assertIn(sentence, self.ls()[name]["reason"])
            self.assertEqual(self.pod("logs", "-n", "1000", name).out.count(sentence), 1, self.pod("logs", name))
            if BACKEND == "systemd":
                unit = self.unit(name, "NRestarts", "ActiveState", "Result", "ExecMainStatus", "ExecMainCode")
                self.assertEqual(unit, {"NRestarts": "0", "ActiveState": "failed", "Result": "exit-code", "ExecMainStatus": str(status), "ExecMainCode": "1"})

    def test_V06_a_note_that_is_no_note_is_reported_and_never_shown(self):
        secret = os.path.join(self.dir, "secret")
        with open(secret, "w") as text:
            text.write("agent-dead\nS3CRET words\n")
        before = tree_manifest(self.dir)[os.fsencode(secret)]
        self.agent("exit", "3", "first words")
        self.refused()
        note = self.note()

        def link():
            os.symlink(secret, note)

        def directory():
            os.mkdir(note)
            os.symlink(secret, os.path.join(note, "S3CRET"))

        def fifo():
            os.mkfifo(note)

        def escapes():
            with open(note, "wb") as text:
                text.write(b"\x1b]0;evil\x07\x1b[2J" * 70000)

        def few_escapes():
            with open(note, "wb") as text:
                text.write(b"agent-dead\n\x1b]0;evil\x07\x1b[2J\xff\n")

        for make, word in ((link, "a link"), (directory, "a directory"), (fifo, "a FIFO"), (escapes, "refused"), (few_escapes, "evil")):
            with self.subTest(make.__name__):
                if os.path.isdir(note) and not os.path.islink(note):
                    shutil.rmtree(note)
                else:
                    os.unlink(note)
                make()
                listed = self.pod("ls", "--json")
                self.assertEqual((listed.status, listed.json[0]["state"]), (0, "refused"))
                self.assertIn(word, listed.json[0]["reason"])
                for words in (("ls", "--json"), ("ls",), ("status", "a"), ("status", "a", "--json")):
                    shown = self.pod(*words, timeout=20)
                    self.assertEqual(shown.status, 0, shown)
                    self.assertIn("refused", shown.out)
                    for bad in ("S3CRET", "first words", "\x1b", "\x07"):
                        self.assertNotIn(bad, shown.out + shown.err)
                    self.assertLess(len(shown.out), 20000)
                    (shown.out + shown.err).encode("utf-8", "strict")
        os.unlink(note)
        link()
        # A refused boot and a good one put a note of their own in its place, or none; the secret is nobody's note.
        self.assertIn("first words", self.refused().err)
        self.assertTrue(stat.S_ISREG(os.lstat(note).st_mode))
        os.unlink(note)
        link()
        self.agent("at-once")
        self.raised()
        self.assertFalse(os.path.lexists(note))
        link()
        self.down("a")
        self.assertFalse(os.path.lexists(note))
        self.assertEqual(tree_manifest(self.dir)[os.fsencode(secret)], before)
        self.assert_no_residue()

    def test_V06_a_directory_in_the_notes_place_is_named_and_left(self):
        self.agent("exit", "3", "first words")
        self.refused()
        os.unlink(self.note())
        kept = os.path.join(self.note(), "kept")
        os.makedirs(kept)
        self.assertIn("a directory", self.ls()["a"]["reason"])
        named = self.raise_pod()
        self.assertEqual(named.status, 1, named)
        self.assertIn("a.refused", self.one_line(named))
        down = self.pod("down", "a")
        self.assertEqual(down.status, 1, down)
        self.assertIn("a.refused", down.err)
        self.assertTrue(os.path.isdir(kept))
        shutil.rmtree(self.note())
        self.down("a")
        self.assert_no_residue()

    def test_a_gate_that_is_taken_exits_1_and_a_pod_that_is_none_exits_3(self):
        self.raised()
        taken = self.pod("_run", "a")
        self.assertEqual(taken.status, 1, taken)
        self.assertFalse(os.path.lexists(self.note()))
        none = self.pod("_run", "nobody")
        self.assertEqual(none.status, 3, none)
        self.assertTrue(os.path.exists(self.note("nobody")))
        self.assertEqual(self.state("nobody"), "refused")
        self.down("nobody")
        self.assertEqual(self.state("nobody"), None)


if __name__ == "__main__":
    unittest.main()
