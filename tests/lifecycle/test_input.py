"""Bad input gets one clear line with what, why and remedy, the right status, and nothing created."""

import json
import os
import subprocess
import unittest

from plane import BACKEND, PYTHON, SERVE, PlaneTest

GOOD_NAMES = ("foo-bar", "a.b", "A", "x_1", "0", "a" * 61)
BAD_NAMES = ("-x", "a@b", "a:b", "ä", "..", ".", ".hidden", "b" * 62, "a\n", "a/../b", "/etc", "", "a b", "a\x1b[31m")


class Input(PlaneTest):
    def assert_nothing_made(self):
        made = [e for top in (self.root, self.pods_dir, self.artifacts) if os.path.isdir(top) for e in os.listdir(top) if not e.endswith(".lock")]
        self.assertEqual(made, [])

    def test_L24_good_names_round_trip(self):
        for name in GOOD_NAMES:
            report = self.up(name, "/bin/sleep", "1000", flags=("--health", "none"))
            self.assertEqual(self.state(name), "up")
            self.assertTrue(os.path.isdir(report["home"]))
            self.down(name)
            self.assert_no_residue(report["id"])

    def test_L24_bad_names_are_refused_with_the_allowed_set(self):
        for name in BAD_NAMES:
            for words in (("up", name, "--", *SERVE), ("down", name), ("status", name), ("url", name), ("logs", name), ("exec", name, "--", "true")):
                if name.startswith("-"):
                    continue
                refused = self.pod(*words)
                self.assertEqual(refused.status, 2, (words, refused))
                self.assertIn("A-Z a-z 0-9 . _ -", self.one_line(refused))
        self.assertEqual(self.pod("up", "-x", "--", *SERVE).status, 2)
        self.assert_nothing_made()

    def test_X01_a_bad_name_is_refused_before_any_file_call_below_the_root(self):
        os.makedirs(self.root, mode=0o700)
        for name in ("..", ".", "a/../b", "/etc"):
            trace = os.path.join(self.dir, "trace")
            env = {**self.env, "ASAN_OPTIONS": "detect_leaks=0"}  # leaks cannot be looked for below ptrace
            done = subprocess.run(["strace", "-f", "-o", trace, "-e", "trace=%file", *self.command("down", name)], env=env, cwd=self.dir,
                                  stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 2, done)
            with open(trace) as lines:
                calls = lines.read()
            self.assertIn("execve", calls)
            self.assertNotIn(self.root, calls)

    def test_V09_a_bad_name_at_boot_ends_with_3_and_writes_nothing(self):
        for name in ("/tmp/x", "..", ""):
            refused = self.pod("_run", name)
            self.assertEqual(refused.status, 3, refused)
        self.assertFalse(os.path.exists(self.pods_dir))
        self.assertFalse(os.path.exists(self.root))

    def test_X36_ports_are_refused_by_grammar(self):
        for port in ("0", "-1", "65536", "0x50", "08080", " 80", "1e3", "", "99999999999999999999"):
            refused = self.pod("up", "a", f"--port={port}", "--", *SERVE)
            self.assertEqual(refused.status, 2, (port, refused))
            self.one_line(refused)
        self.assert_nothing_made()

    def test_flags_may_follow_names_whatever_POSIXLY_CORRECT_says(self):
        strict = {"POSIXLY_CORRECT": "1"}
        done = self.pod("up", "demo", "--health", "none", "--json", "--", "/bin/sleep", "1000", env=strict)
        self.assertEqual(done.status, 0, done)
        done = self.pod("down", "demo", "--json", "other", "--stop-secs", "1", env=strict)
        self.assertEqual(([pod["name"] for pod in done.json], done.status), (["demo", "other"], 0), done)
        for words in (("down", "--", "demo"), ("ls", "-x"), ("url", "a", "b", "--json")):
            self.assertEqual(self.pod(*words, env=strict).status, 2, words)

    def test_a_port_that_needs_a_privilege_is_told(self):
        if os.geteuid() != 0:
            refused = self.pod("up", "demo", "--port", "80", "--", *SERVE)
            self.assertEqual(refused.status, 78, refused)
            self.assertIn("ports below 1024 need a privilege", self.one_line(refused))
            refused = self.pod("up", "demo", "--", *SERVE, env={"KIROCREW_POD_BASE_PORT": "700", "KIROCREW_POD_PORT_SPAN": "20"})
            self.assertEqual(refused.status, 78, refused)
            self.assert_nothing_made()

    def test_bytes_that_JSON_cannot_carry_are_refused(self):
        self.up("demo", "/bin/sleep", "1000", flags=("--health", "none"))
        for words in (("s", "--", "/bin/server", b"a\xff"), ("s", "--env", b"A=\xff", "--", "/bin/server"), (b"\xff", "--", "/bin/server"), ("", "--", "/bin/server"), ("s", "--", "")):
            refused = self.pod("mcp", "add", "demo", *words)
            self.assertEqual(refused.status, 2, (words, refused))
            self.one_line(refused)
        self.assertEqual(self.pod("mcp", "ls", "demo").out, "")

    def test_the_live_port_is_refused_with_70(self):
        refused = self.pod("up", "a", "--port", "5476", "--", *SERVE)
        self.assertEqual(refused.status, 70, refused)
        self.assertIn("5476", self.one_line(refused))
        self.assert_nothing_made()

    def test_L25_a_command_is_found_on_the_callers_path_and_recorded_absolute(self):
        private = os.path.join(self.dir, "bin")
        os.makedirs(private)
        program = os.path.join(private, "only-here")
        with open(program, "w") as script:
            script.write("#!/bin/sh\nexec sleep 1000\n")
        os.chmod(program, 0o755)
        report = self.pod("up", "a", "--health", "none", "--json", "--", "only-here", env={"PATH": f"{private}:{self.env['PATH']}"})
        self.assertEqual(report.status, 0, report)
        with open(os.path.join(self.pods_dir, "a.env")) as record:
            self.assertIn(json.dumps([program], separators=(",", ":")), record.read())
        refused = self.pod("up", "b", "--", "not-there")
        self.assertEqual(refused.status, 3, refused)
        self.assertIn("not found: not-there, searched ", self.one_line(refused))
        self.assertEqual(list(self.ls()), ["a"])

    def test_X25_a_payload_that_cannot_be_executed_is_named(self):
        plain = os.path.join(self.dir, "plain")
        wrong = os.path.join(self.dir, "wrong")
        for path, body in ((plain, "text\n"), (wrong, "#!/no/such/interpreter\n")):
            with open(path, "w") as script:
                script.write(body)
        os.chmod(wrong, 0o755)
        for word in (plain, self.dir, os.path.join(self.dir, "missing")):
            refused = self.pod("up", "a", "--", word)
            self.assertEqual(refused.status, 3, refused)
            self.assertIn(word, self.one_line(refused))
            self.assert_nothing_made()
        refused = self.pod("up", "a", "--health", "none", "--", wrong)
        self.assertEqual(refused.status, 3, refused)
        self.assertIn("/no/such/interpreter", refused.err)
        self.assertEqual(self.state("a"), "refused")
        self.down("a")
        self.assert_no_residue()

    def test_L20_xdg_directories_that_cannot_be_meant_are_unset(self):
        for value in ("relative", "", "../up"):
            cwd = os.path.join(self.dir, "cwd" + str(len(value)))
            os.makedirs(cwd)
            seen = self.pod("ls", env={name: value for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME")}, cwd=cwd)
            self.assertEqual(seen.status, 0, seen)
            self.assertEqual(os.listdir(cwd), [])

    def test_L21_home_unset_or_unusable(self):
        plain = os.path.join(self.dir, "file")
        open(plain, "w").close()
        cwd = os.path.join(self.dir, "cwd")
        os.makedirs(cwd)
        env = {k: v for k, v in self.env.items() if k not in ("KIROCREW_POD_ROOT", "KIROCREW_POD_ENV_DIR", "KIROCREW_POD_ARTIFACTS_DIR")}
        for home in (None, "", os.path.join(self.dir, "missing"), plain, "relative"):
            these = {k: v for k, v in env.items() if k != "HOME"}
            if home is not None:
                these["HOME"] = home
            # A name that no passwd home has a record of: read-only, so that the real home is not written to.
            done = subprocess.run([*self.command("url", "no-such-pod-here")], env=these, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 3, (home, done))
            self.assertEqual(os.listdir(cwd), [])
            self.assertFalse(os.path.exists(os.path.join(self.dir, "missing")))

    def test_L22_socket_paths_of_any_length_work(self):
        for length in (107, 108, 109, 200):
            self.env["KIROCREW_POD_UNIT_PREFIX"] = f"{self.prefix}x{length}"
            deep = os.path.join(self.dir, "d" * max(1, length - len(self.dir) - 2 - len("/one.sock") + 1))
            report = self.pod("up", "one", "--health", "none", "--json", "--", "/bin/sleep", "1000", env={"KIROCREW_POD_ENV_DIR": deep})
            self.assertEqual(report.status, 0, report)
            seen = self.pod("status", "one", "--json", env={"KIROCREW_POD_ENV_DIR": deep})
            self.assertEqual(seen.json["state"], "up", seen)
            gone = self.pod("down", "one", env={"KIROCREW_POD_ENV_DIR": deep})
            self.assertEqual(gone.status, 0, gone)
            self.assertEqual([e for e in os.listdir(deep) if not e.endswith(".lock")], [])

    def test_L23_line_breaks_and_unit_text_are_refused_before_anything_is_written(self):
        for value in ("a\nb", "a\rb", "x\n[Service]\nExecStart=/bin/false"):
            for env in ({"KIROCREW_POD_ROOT": os.path.join(self.dir, value)}, {"KIROCREW_POD_ENV_DIR": os.path.join(self.dir, value)},
                        {"KIROCREW_POD_UNIT_PREFIX": value}, {"KIROCREW_POD_PATH": value}):
                refused = self.pod("up", "a", "--", *SERVE, env=env)
                self.assertNotEqual(refused.status, 0, (env, refused))
                line = self.one_line(refused)
                self.assertIn(next(iter(env)), line)
            config = os.path.join(self.dir, "config.ini")
            with open(config, "w") as ini:
                ini.write(f"[plane]\nunit-prefix = {value}\n")
            refused = self.pod("up", "a", "--", *SERVE, config=config)
            self.one_line(refused)
            self.assertNotEqual(refused.status, 0)
        refused = self.pod("up", "a", "--checkout", "x\ny")
        self.assertNotEqual(refused.status, 0)
        self.one_line(refused)
        self.assert_nothing_made()

    def test_ini_faults_name_file_line_and_key(self):
        config = os.path.join(self.dir, "config.ini")
        for text, where, what in (
            ("[plane]\nrot = /x\n", 2, "rot"),
            ("[plan]\nroot = /x\n", 1, "plan"),
            ("[plane]\nroot = /x\nroot = /y\n", 3, "root"),
            ("[plane]\nroot = /" + "x" * 400 + "\n", 2, "root"),
            ("root = /x\n", 1, "root"),
            ("[payload]\nexecute = x\n", 2, "execute"),
        ):
            with open(config, "w") as ini:
                ini.write(text)
            refused = self.pod("ls", config=config)
            self.assertEqual(refused.status, 78, (text, refused))
            line = self.one_line(refused)
            self.assertIn(config, line)
            self.assertIn(str(where), line)
            self.assertIn(what, line)
        refused = self.pod("ls", config=os.path.join(self.dir, "none.ini"))
        self.assertNotEqual(refused.status, 0)
        self.assertIn("none.ini", self.one_line(refused))

    def test_L28_bus_variables_unset(self):
        env = {k: v for k, v in self.env.items() if k not in ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")}
        done = subprocess.run(self.command("up", "a", "--backend", "systemd", "--json", "--", *SERVE), env=env, cwd=self.dir, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60)
        if os.path.exists(f"/run/user/{os.getuid()}/systemd/private"):
            self.assertEqual(done.returncode, 0, done)
            self.down("a")
            return
        # No manager of this user lives here: one message, and nothing made.
        self.assertEqual(BACKEND, "embedded")
        self.assertEqual(done.returncode, 69, done)
        line = done.stderr.decode()
        self.assertEqual(line.count("\n"), 1, line)
        self.assertIn("embedded", line)
        self.assertEqual(self.ls(), {})

    def test_L29_no_service_manager_at_all(self):
        nowhere = {"XDG_RUNTIME_DIR": os.path.join(self.dir, "none"), "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent"}
        if BACKEND == "systemd":
            return self.L29_dead_home(nowhere)
        auto = self.pod("up", "a", "--backend", "auto", "--json", "--", *SERVE, env={**nowhere, "KIROCREW_POD_BACKEND": "auto"})
        self.assertEqual(auto.status, 0, auto)
        self.assertEqual(auto.json["backend"], "embedded")
        self.down("a")
        self.L29_dead_home(nowhere)

    def L29_dead_home(self, nowhere):
        home = self.home("dead")
        os.makedirs(os.path.join(home, "os-home"), mode=0o700)
        env = {**nowhere, "KIROCREW_POD_BACKEND": "embedded"}
        seen = self.pod("ls", "--json", env=env)
        self.assertEqual([(p["name"], p["state"]) for p in seen.json], [("dead", "orphan")])
        self.assertEqual(self.pod("render", "dead", "--for", "systemd", env=env).status, 0)
        gone = self.pod("down", "dead", env=env)
        self.assertEqual(gone.status, 0, gone)
        self.assertFalse(os.path.exists(home))

    def test_L38_each_name_is_done_and_the_status_does_not_depend_on_the_order(self):
        orders = (("good", "missing", "..", "good2"), ("..", "good2", "good", "missing"), ("missing", "good", "good2", ".."))
        for names in orders:
            self.up("good", "/bin/sleep", "1000", flags=("--health", "none"))
            self.up("good2", "/bin/sleep", "1000", flags=("--health", "none"))
            done = self.pod("down", *names)
            self.assertEqual(done.status, 2, done)
            self.assertEqual(sorted(done.out.splitlines()), ["good2: gone", "good: gone", "missing: nothing to stop"])
            self.one_line(done)
            self.assertEqual(self.ls(), {})
        empty = self.pod("down", "")
        self.assertEqual(empty.status, 2, empty)
        self.one_line(empty)
        self.assertEqual(self.pod("down").status, 2)

    def test_L39_closed_and_full_outputs(self):
        for number in range(200):
            os.makedirs(os.path.join(self.home(f"dead{number}"), "os-home"), mode=0o700)
        head = subprocess.run(["/bin/bash", "-c", 'set -o pipefail; "$0" ls | head -1; echo "${PIPESTATUS[0]}"', self.command()[0]], env=self.env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(head.stderr, b"")
        self.assertIn(head.stdout.decode().split("\n")[1], ("0", "141"))
        with open("/dev/full", "w") as full:
            done = subprocess.run(self.command("ls"), env=self.env, stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count(b"\n"), 1)
        self.down("--all", timeout=300)
        done = subprocess.run(["/bin/sh", "-c", '"$0" up one --health none -- /bin/sleep 1000 2>&-', self.command()[0]], env=self.env, stdout=subprocess.PIPE)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.state("one"), "up")

    def test_X61_closed_standard_descriptors(self):
        for closed in ("<&-", ">&-", "2>&-", "<&- >&-", "<&- 2>&-", ">&- 2>&-", "<&- >&- 2>&-"):
            done = subprocess.run(["/bin/sh", "-c", f'"$0" up one --health none -- /bin/sleep 1000 {closed}', self.command()[0]], env=self.env,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertIn(done.returncode, (0, 1) if ">&-" in closed else (0,), (closed, done))
            pid = self.ls()["one"]["pid"]
            fds = {int(fd): os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
            self.assertTrue({0, 1, 2} <= set(fds), fds)
            for fd in (0, 1, 2):
                self.assertNotIn(self.pods_dir, fds[fd])
            self.down("one")

    def test_X65_a_deleted_working_directory_and_no_arguments(self):
        gone = os.path.join(self.dir, "gone")
        os.makedirs(gone)
        done = subprocess.run(["/bin/sh", "-c", f'cd {gone} && rmdir {gone} && "$0" ls --json', self.command()[0]], env=self.env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stdout), (0, b"[]\n"), done)
        no_words = "import ctypes, sys; ctypes.CDLL(None).execve(sys.argv[1].encode(), (ctypes.c_char_p * 1)(None), None)"
        done = subprocess.run([PYTHON, "-c", no_words, self.command()[0]], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stderr.count(b"\n")), (2, 1), done)

    def test_X60_the_locale_changes_nothing(self):
        self.up("one", "/bin/sleep", "1000", flags=("--health", "none"))
        outputs = set()
        for locale in ("C", "tr_TR.UTF-8", "de_DE.UTF-8", "not-a-locale"):
            pod = self.pod("status", "one", "--json", env={"LC_ALL": locale}).json
            del pod["age_s"]
            outputs.add(json.dumps(pod))
        self.assertEqual(len(outputs), 1)

    def test_unreadable_roots_are_named(self):
        if os.getuid() == 0:
            return self.as_file()
        os.makedirs(self.root, mode=0o000)
        failed = self.pod("ls")
        self.assertNotEqual(failed.status, 0, failed)
        self.assertIn(self.root, self.one_line(failed))

    def as_file(self):
        open(self.root, "w").close()
        failed = self.pod("ls")
        self.assertNotEqual(failed.status, 0, failed)
        self.assertIn(self.root, self.one_line(failed))
        failed = self.pod("up", "a", "--", *SERVE)
        self.assertNotEqual(failed.status, 0, failed)
        self.assertIn(self.root, self.one_line(failed))

    def test_usage_faults_are_2_and_one_line(self):
        for words in (("nonsense",), ("up",), ("up", "a", "b"), ("up", "a", "--no-such-flag"), ("up", "a", "--"), ("ls", "-x"), ("ls", "a@b"), ("ls", "--state", "x"), ("status",), ("exec", "a"),
                      ("render", "a"), ("render", "a", "--for", "upstart"), ("prune", "--older-than", "soon"), ("prune", "--all", "--older-than", "3d"),
                      ("up", "a", "--backend", "upstart", "--", "true"), ("up", "a", "--health", "ping", "--", "/bin/true"),
                      ("up", "a", "--memory-max", "lots", "--", "/bin/true"), ("up", "a", "--cpu-quota", "fast", "--", "/bin/true"),
                      ("up", "a", "--approval", "maybe", "--", "/bin/true"), ("logs", "a", "-n", "x"), ("down", "--all", "a"), ("--config",), ()):
            refused = self.pod(*words)
            self.assertEqual((refused.status, refused.out), (2, ""), (words, refused))
            self.one_line(refused)
        self.assert_nothing_made()


if __name__ == "__main__":
    unittest.main()
