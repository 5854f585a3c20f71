"""The probe of MCP servers: what they get as temp, what it tells, what it leaves."""

import json
import os
import random
import time
import unittest

from behind import SLEEP
from plane import PYTHON
from servers import FAKE, TRIPLE, ServersTest

HIDE = "for d in /usr/bin /bin /usr/local/bin; do [ ! -e $d/bwrap ] || mount --bind /dev/null $d/bwrap; done; exec \"$@\""
COUNTER = """
import json, os, sys, time
place, name, enough = sys.argv[1], sys.argv[2], int(sys.argv[3])
here = os.path.join(place, "now-" + name)
def answer(result):
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "initialize":
        open(here, "w").close()
        most, end = 0, time.monotonic() + 3
        while time.monotonic() < end:
            most = max(most, len([e for e in os.listdir(place) if e.startswith("now-")]))
            if most >= enough:
                open(os.path.join(place, "enough"), "w").close()
            if os.path.exists(os.path.join(place, "enough")):
                break
            time.sleep(0.01)
        with open(os.path.join(place, "most-" + name), "w") as text:
            text.write(str(most))
        answer({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": name, "version": "1"}})
    elif request["method"] == "tools/list":
        os.unlink(here)
        answer({"tools": [{"name": name}]})
"""


class Temp(ServersTest):
    def test_M12_the_table_of_three_servers_that_tell_their_temp(self):
        """Probe and run decide alike; nothing is left after `down`."""
        report = self.pod_with(seed="connections-two")
        exists, missing = os.path.join(self.run_dir, "mcp-tmp"), os.path.join(self.run_dir, "custom-tmp")
        os.makedirs(exists, mode=0o700, exist_ok=True)
        self.facts("declared", TMPDIR=exists)
        self.facts("custom", TMPDIR=missing)
        self.facts("plain")
        results = self.probe()
        self.assertEqual(list(results), ["notes", "clock", "declared", "custom", "plain"])
        for server, declared in (("declared", exists), ("custom", missing), ("plain", None)):
            result = results[server]
            self.assertEqual((result["status"], result["temp"]["source"], result["sandbox"]), ("ok", "managed", "bwrap"), result)
            self.assertRegex(result["temp"]["path"], self.managed())
            said = self.found(result)
            self.assertEqual([said[key] for key in TRIPLE], [result["temp"]["path"]] * 3)
            self.assertEqual((said["directory"], said["write"], said["run"]), ("yes", "ok", "EROFS"))
            refusals = [{"key": "TMPDIR", "path": declared, "cause": "sealed"}] if declared else []
            self.assertEqual(result["temp_refusals"], refusals)
            warned = [warning for warning in result["warnings"] if declared and declared in warning]
            self.assertEqual(len(warned), len(refusals), result["warnings"])
        for server in ("notes", "clock"):
            self.assertEqual((results[server]["status"], results[server]["temp"]["source"], results[server]["warnings"]), ("ok", "managed", []))
        self.assertEqual(len({result["temp"]["path"] for result in results.values()}), 5)
        self.assertEqual(self.left(), [])
        log = self.pod("logs", "-n", "1000", "a").out
        warnings = [line for line in log.splitlines() if "WARNING" in line]
        self.assertEqual(len(warnings), 2, log)
        for server, declared in (("declared", exists), ("custom", missing)):
            (line,) = [line for line in warnings if f"server {server}:" in line]
            for word in ("TMPDIR", declared, "sealed"):
                self.assertIn(word, line)
        for server, declared in (("declared", exists), ("custom", missing), ("plain", None)):
            said, err = self.handshake(server)
            self.assertEqual(len({said[key] for key in TRIPLE}), 1)
            self.assertRegex(said["TMPDIR"], self.managed())
            self.assertEqual((said["directory"], said["write"], said["run"]), ("yes", "ok", "EROFS"))
            self.assertEqual("WARNING" in err and declared in err and "sealed" in err if declared else err, True if declared else "")
            self.assertEqual(self.left(), [])
        warnings = [line for line in self.pod("logs", "-n", "1000", "a").out.splitlines() if "WARNING" in line]
        self.assertEqual(len(warnings), 4)
        self.assertFalse(os.path.exists(missing))
        self.down("a")
        self.assert_no_residue(report["id"])

    def test_the_table_for_people(self):
        self.pod_with(seed="connections-two")
        self.facts("declared", TMPDIR=self.run_dir)
        shown = self.pod("probe", "a")
        self.assertEqual(shown.status, 0, shown)
        lines = [line.split() for line in shown.out.splitlines()]
        self.assertEqual(lines[0], ["SERVER", "STATUS", "TOOLS", "TEMP", "NOTE"])
        self.assertEqual([line[:4] for line in lines[1:]], [["notes", "ok", "1", "managed"], ["clock", "ok", "1", "managed"], ["declared", "ok", "7", "managed"]])
        self.assertIn("sealed", shown.out.splitlines()[3])

    def test_M09_any_sealed_path_in_any_key_refuses_the_whole_declaration(self):
        self.pod_with()
        home = self.report["home"]
        rows = {}
        for number, path in enumerate((f"{home}/run/x", f"{home}/run", f"{home}/run/", f"{home}//run/./x")):
            for env in ({"TMPDIR": path}, {"TMP": path}, {"TEMP": path}, {"TMPDIR": path, "TEMP": self.dir}, {"TMP": self.dir, "TEMP": path},
                        {"tmpdir": path, "TMP": path}):
                server = f"s{number}-" + "-".join(f"{key}{int(value == path)}" for key, value in env.items())
                rows[server] = env
                self.facts(server, **env)
        results = self.probe()
        self.assertEqual(set(results), set(rows))
        for server, env in rows.items():
            result = results[server]
            said = self.found(result)
            self.assertRegex(said["TMPDIR"], self.managed())
            self.assertEqual([said[key] for key in TRIPLE], [result["temp"]["path"]] * 3, server)
            self.assertEqual((said["tmpdir"], said["write"], said["run"]), ("", "ok", "EROFS"))
            self.assertEqual((result["status"], result["temp"]["source"]), ("ok", "managed"))
            refused = [{"key": key, "path": value, "cause": "sealed"} for key, value in env.items() if value != self.dir]
            self.assertEqual(result["temp_refusals"], refused)
        self.assertEqual(self.left(), [])

    def test_M11_the_cause_is_the_true_one(self):
        self.pod_with()
        links = os.path.join(self.dir, "links")
        os.makedirs(links)
        os.makedirs(os.path.join(self.run_dir, "inner"))
        os.symlink(os.path.join(self.run_dir, "inner"), os.path.join(links, "in"))
        os.symlink("self", os.path.join(links, "self"))
        os.symlink("//host/share", os.path.join(links, "remote"))
        for number in range(42):
            os.symlink(f"n{number - 1}" if number else self.dir, os.path.join(links, f"n{number}"))
        rows = {f"{links}/in/../tmp": "sealed", f"{links}/in": "sealed", f"{links}/n40": "loop", f"{links}/self": "loop", f"{self.run_dir}/missing/leaf": "sealed",
                "//h/s": "remote-or-device", "\\\\h\\s": "remote-or-device", "\\\\.\\pipe\\x": "remote-or-device", f"{links}/remote/x": "remote-or-device",
                "tmp": "relative", "": "empty", "/" + "x/" * 2048 + "x": "too-long"}
        for number, path in enumerate(rows):
            self.facts(f"s{number}", TMP=path)
        results = self.probe()
        for number, (path, cause) in enumerate(rows.items()):
            result = results[f"s{number}"]
            self.assertEqual(result["temp_refusals"], [{"key": "TMP", "path": path, "cause": cause}])
            said = self.found(result)
            self.assertEqual([said[key] for key in TRIPLE], [result["temp"]["path"]] * 3)
            self.assertEqual((said["write"], said["run"]), ("ok", "EROFS"))

    def test_M13_siblings_of_run_are_honoured_as_they_are_written(self):
        self.pod_with()
        rows = ("run2", "running", "run.bak", "ru", "RUN")
        for name in rows:
            path = os.path.join(self.report["home"], name)
            os.mkdir(path, 0o700)
            self.facts(name, TMPDIR=path)
            self.facts("lower-" + name, tmpdir=path)
        results = self.probe()
        for name in rows:
            path = os.path.join(self.report["home"], name)
            for server, lower in ((name, ""), ("lower-" + name, path)):
                result = results[server]
                said = self.found(result)
                self.assertEqual((result["status"], result["temp"], result["temp_refusals"]), ("ok", {"source": "declared", "path": path}, []))
                self.assertEqual((said["TMPDIR"], said["tmpdir"], said["TMP"], said["TEMP"]), (path, lower, "", ""))
                self.assertEqual((said["write"], said["run"]), ("ok", "EROFS"))
        self.assertEqual(self.left(), [])
        self.assertNotIn("WARNING", self.pod("logs", "a").out)


class Probe(ServersTest):
    def test_each_ill_server_has_its_reason_and_the_exit_status_is_1(self):
        self.pod_with()
        plain = os.path.join(self.dir, "plain")
        open(plain, "w").close()
        rows = {"false": ("/bin/false",), "missing": ("/no/such/server",), "not-executable": (plain,), "error": (FAKE, "error"), "never": (FAKE, "never")}
        texts = {"false": "exit status 1", "missing": "/no/such/server", "not-executable": "cannot be executed", "error": "broken", "never": "did not answer"}
        self.add("good", FAKE, "plain")
        self.assertEqual(self.probe()["good"]["status"], "ok")
        for server, words in rows.items():
            self.add(server, *words)
        results = self.probe(status=1, flags=("--timeout", "1"))
        self.assertEqual(results.pop("good")["status"], "ok")
        for server, result in results.items():
            self.assertEqual(result["status"], "error")
            self.assertIn(texts[server], result["detail"])
            self.assertEqual(result["tools"], [])
        self.assertEqual(self.probe("good")["good"]["status"], "ok")
        self.assertEqual(list(self.probe("never", "good", status=1, flags=("--timeout=1",))), ["never", "good"])
        self.assertEqual(self.pod("probe", "a", "false").status, 1)
        self.assertEqual(self.left(), [])

    def test_what_a_good_server_answers_is_told(self):
        self.pod_with(seed="connections-two")
        result = self.probe("notes")["notes"]
        self.assertEqual(set(result), {"server", "status", "detail", "protocol_version", "server_info", "tools", "warnings", "temp", "temp_refusals",
                                       "sandbox", "ms"})
        self.assertEqual((result["status"], result["protocol_version"]), ("ok", "2025-11-25"))
        self.assertEqual(result["server_info"], {"name": "notes", "version": "1.0.0"})
        self.assertEqual([tool if isinstance(tool, str) else tool["name"] for tool in result["tools"]], ["read_note"])

    def test_unknown_servers_and_pods_are_one_line(self):
        self.pod_with()
        self.add("good", FAKE, "plain")
        for words in (("probe", "a", "nobody"), ("probe", "a", "good", "nobody"), ("mcp", "run", "a", "nobody")):
            refused = self.pod(*words)
            self.assertEqual((refused.status, refused.out), (2, ""), refused)
            self.assertIn("nobody", self.one_line(refused))
        for words in (("probe", "b"), ("mcp", "ls", "b"), ("mcp", "run", "b", "good"), ("mcp", "add", "b", "good", "--", "/bin/true")):
            refused = self.pod(*words)
            self.assertEqual((refused.status, refused.out), (3, ""), refused)
            self.assertIn("b", self.one_line(refused))
        for words in (("mcp", "rm", "a", "nobody"),):
            refused = self.pod(*words)
            self.assertNotEqual(refused.status, 0, refused)
            self.assertIn("nobody", self.one_line(refused))
        for words in (("probe", "a", "--timeout", "0"), ("mcp", "frob", "a"), ("mcp", "add", "a", "x"), ("mcp", "run", "a"), ("mcp", "ls", "a", "x"),
                      ("mcp", "add", "a", "x", "--env", "NOVALUE", "--", "/bin/true"), ("mcp", "ls", "a", "--env", "A=b")):
            refused = self.pod(*words)
            self.assertEqual(refused.status, 2, (words, refused))
            self.one_line(refused)

    def test_disabled_servers_are_told_and_not_started(self):
        self.pod_with()
        ran = os.path.join(self.dir, "ran")
        with open(self.file, "w") as text:
            json.dump({"mcpServers": {"off": {"command": "/bin/sh", "args": ["-c", f"echo x >{ran}"], "disabled": True}}}, text)
        self.assertEqual(self.probe()["off"]["status"], "disabled")
        self.assertFalse(os.path.exists(ran))

    def test_five_at_once_and_never_six(self):
        self.pod_with()
        place = os.path.join(self.dir, "place")
        os.makedirs(place)
        server = os.path.join(self.dir, "counter.py")
        with open(server, "w") as text:
            text.write(COUNTER)
        names = [f"s{number}" for number in range(11)]
        for name in names:
            self.add(name, PYTHON, server, place, name, "5")
        results = self.probe(flags=("--timeout", "60"))
        self.assertEqual([(name, results[name]["status"]) for name in names], [(name, "ok") for name in names])
        most = []
        for name in names:
            with open(os.path.join(place, "most-" + name)) as text:
                most.append(int(text.read()))
        self.assertEqual(max(most), 5, most)

    def test_no_sandbox_runs_and_says_so(self):
        self.pod_with()
        self.facts("declared", TMPDIR=self.run_dir)
        result = self.probe(flags=("--no-sandbox",))["declared"]
        self.assertEqual((result["status"], result["sandbox"]), ("ok", "off"))
        self.assertEqual(self.found(result)["run"], "ok")
        self.assertEqual(result["temp"]["source"], "managed")
        self.assertEqual(self.left(), [])

    def test_X46_without_bubblewrap_nothing_runs_and_it_is_said(self):
        self.pod_with()
        ran = os.path.join(self.dir, "ran")
        self.add("s", "/bin/sh", "-c", f"echo x >>{ran}; exec {FAKE} plain")
        status, out, err = self.in_mounts(HIDE, *self.command("probe", "a", "--json"))
        self.assertEqual(status, 1, err)
        (result,) = json.loads(out)["mcp"]
        self.assertEqual((result["status"], result["sandbox"], result["tools"]), ("error", "unavailable", []))
        self.assertIn("bwrap", result["detail"])
        status, out, err = self.in_mounts(HIDE, *self.command("mcp", "run", "a", "s"))
        self.assertNotIn(status, (0, 2), err)
        self.assertEqual(out, "")
        self.assertIn("bwrap", err)
        self.assertFalse(os.path.exists(ran))
        self.assertEqual(self.left(), [])
        status, out, err = self.in_mounts(HIDE, *self.command("probe", "a", "--json", "--no-sandbox"))
        self.assertEqual((status, json.loads(out)["mcp"][0]["sandbox"]), (0, "off"), err)
        self.assertTrue(os.path.exists(ran))
        self.assertEqual(self.probe()["s"]["sandbox"], "bwrap")

    def test_X46_an_evil_path_is_not_looked_at(self):
        self.pod_with()
        evil, ran = os.path.join(self.dir, "evil"), os.path.join(self.dir, "ran")
        os.makedirs(evil)
        for program in ("bwrap", "sh", "unshare"):
            path = os.path.join(evil, program)
            with open(path, "w") as script:
                script.write(f"#!/bin/sh\necho {program} >>{ran}\nexit 0\n")
            os.chmod(path, 0o755)
        self.facts("s")
        result = self.probe(env={"PATH": f"{evil}:{self.env['PATH']}"})["s"]
        self.assertEqual((result["status"], result["sandbox"], self.found(result)["run"]), ("ok", "bwrap", "EROFS"))
        self.assertFalse(os.path.exists(ran))

    def test_M14_fifty_probes_leave_nothing(self):
        self.pod_with()
        for number in range(5):
            self.add(f"s{number}", FAKE, "temp")
        before = self.strangers()
        probe = self.command("probe", "a")
        if os.getuid() == 0:
            # A /tmp of its own, in which nobody else makes anything; the plane stays where it is.
            script = ('top="$1"; shift; if [ "${top#/tmp/}" != "$top" ]; then mount --bind "$top" /mnt; mount -t tmpfs tmpfs /tmp; mkdir -p "$top"; '
                      'mount --move /mnt "$top"; else mount -t tmpfs tmpfs /tmp; fi; find /tmp -xdev >/run/before-$$; '
                      'for n in 1 2 3 4 5 6 7 8 9 10; do "$@"; done; find /tmp -xdev | diff /run/before-$$ -; rm /run/before-$$')
            status, out, err = self.in_mounts(script, self.dir, *probe)
            self.assertEqual((status, err), (0, ""), out + err)
            self.assertEqual(out.count(" ok "), 50, out)
        else:
            for _ in range(10):
                self.assertEqual(list({result["status"] for result in self.probe().values()}), ["ok"])
            self.assertFalse(os.path.exists("/tmp/big"))
        self.assertEqual(self.left(), [])
        self.assertEqual(self.strangers(), before)

    def scratch_of(self, process):
        """A scratch as a probe makes it, owned by the process."""
        with open(f"/proc/{process.pid}/stat") as text:
            start = text.read().rpartition(")")[2].split()[19]
        scratch = os.path.join(self.scratches, f"probe-{process.pid:08x}")
        os.makedirs(os.path.join(scratch, "tmp"))
        with open(os.path.join(scratch, ".owner"), "w") as text:
            text.write(f"{process.pid} {start}\n")
        return os.path.basename(scratch)

    def test_M14_the_sweep_keeps_the_living_and_removes_the_dead(self):
        self.pod_with()
        self.add("s", FAKE, "plain")
        self.add("stays", FAKE, "term")
        before = self.strangers()
        run = self.running("stays")
        self.assertEqual(run.stdout.readline(), b"ready\n")
        (living,) = self.left()
        owner = self.process(*SLEEP, start_new_session=True)
        planted = self.scratch_of(owner)
        self.probe("s")
        self.assertEqual(sorted(self.left()), sorted([living, planted]))
        run.kill()
        run.communicate()
        self.eventually(lambda: self.strangers() == before, what="the end of the server whose prober was killed")
        self.assertIn(living, self.left())
        self.swept("s", [planted])
        owner.kill()
        owner.wait()
        self.swept("s", [])

    def swept(self, server, expected):
        """A probe's sweep. A process that is ending shows neither words nor variables any more, and still keeps its scratch for a moment."""
        def sweep():
            self.assertEqual(self.probe(server)[server]["status"], "ok")
            return sorted(self.left()) == sorted(expected)
        self.eventually(sweep, what=f"that only {expected} is left")

    def test_X49_a_prober_that_is_killed_leaves_no_process_and_no_mount(self):
        self.pod_with()
        self.add("s", FAKE, "facts", self.run_dir)
        self.add("t", FAKE, "never")
        self.add("u", "/bin/sh", "-c", "sleep 1000 & setsid sleep 1000 & exec sleep 1000")
        before = self.strangers()
        with open("/proc/self/mountinfo") as text:
            mounts = [line for line in text if self.dir in line]
        chance = random.Random(49)
        for _ in range(20):
            prober = self.start("probe", "a", start_new_session=True)
            time.sleep(chance.uniform(0, 0.4))
            prober.kill()
            prober.communicate()
            self.eventually(lambda: self.strangers() <= before, what="the end of all that a killed prober had started")
        with open("/proc/self/mountinfo") as text:
            self.assertEqual([line for line in text if self.dir in line], mounts)
        self.swept("s", [])
        self.down("a")
        self.assert_no_residue(self.report["id"])


if __name__ == "__main__":
    unittest.main()
