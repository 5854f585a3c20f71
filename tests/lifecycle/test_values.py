"""Values reach the payload byte for byte, through the record, the unit and boot, or are refused before anything is written; secrets do not."""

import contextlib
import json
import os
import shutil
import stat
import subprocess
import time
import unittest

from plane import BACKEND, PYTHON, PlaneTest

IDLE = [PYTHON, "-c", "import time; time.sleep(1000)"]
ODD = ("%", "%h", "%%", "100%25", "%n%i", "$HOME", "${X}", "$$", "end$", "a b", "  edges  ", "quote\"d", "it's", "back\\slash", "end\\", "&<>", "#hash",
       ";semi", "ü ☃ \U0001f600", "tab\there", "[x]", "a=b", "-x", "@x", "*?~`|!(){{}")
STANZA = "x\n[Service]\nExecStart=/bin/false"
KIROCREW = """#!/usr/bin/python3
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/api/health" else 404); self.end_headers()
    def log_message(self, *words):
        pass
http.server.HTTPServer(("127.0.0.1", int(os.environ["KIROCREW_PORT"])), Handler).serve_forever()
"""


def words_of(pid, what):
    """Empty for a moment while the kernel makes the new image."""
    for _ in range(500):
        with open(f"/proc/{pid}/{what}", "rb") as words:
            found = words.read().split(b"\0")[:-1]
        if found:
            return found
        time.sleep(0.01)
    return []


def environment_of(pid):
    return dict(entry.split(b"=", 1) for entry in words_of(pid, "environ"))


class Values(PlaneTest):
    def idle(self, name, *words, flags=(), **how):
        return self.up(name, *(words or IDLE), flags=("--health", "none", *flags), **how)

    @contextlib.contextmanager
    def base_environment(self, variables):
        """What the service manager hands down: the caller's environment with the keeper, the user manager's own with systemd."""
        if BACKEND != "systemd":
            self.env.update(variables)
            yield
            for name in variables:
                del self.env[name]
            return
        self.systemctl("set-environment", *(f"{name}={value}" for name, value in variables.items()))
        try:
            yield
        finally:
            self.systemctl("unset-environment", *variables)

    def systemctl(self, *words):
        for begin in range(1, len(words), 500):
            subprocess.run(["systemctl", "--user", words[0], *words[begin : begin + 500]], check=True)

    def assert_nothing_made(self):
        made = [e for top in (self.root, self.pods_dir, self.artifacts) if os.path.isdir(top) for e in os.listdir(top) if not e.endswith(".lock")]
        self.assertEqual(made, [])

    # --- arguments --------------------------------------------------------------------------------------------------------

    def test_X20_X24_V04_arguments_are_byte_exact(self):
        words = ["", " ", "a\nb", STANZA, "cr\rhere", "\x1b[31m", "\x7f", "EXEC='x'", "&&", "+x", ":x", *(w.replace("{{}", "{") for w in ODD)]
        sent = [w.replace("{", "{{") for w in words]
        report = self.idle("a", *IDLE, *sent)
        self.assertEqual(words_of(report["pid"], "cmdline"), [w.encode() for w in (*IDLE, *words)])
        self.assertEqual(environment_of(report["pid"])[b"KIROCREW_POD_NAME"], b"a")
        # The same after a restart from the record alone.
        os.kill(report["pid"], 9)
        self.eventually(lambda: self.ls()["a"]["pid"] not in (None, report["pid"]) and self.state("a") == "up", seconds=30, what="the restart")
        self.eventually(lambda: words_of(self.ls()["a"]["pid"], "cmdline") == [w.encode() for w in (*IDLE, *words)], what="the same words") # it boots first

    def test_V03_V04_the_commands_own_path_may_be_odd(self):
        for number, odd in enumerate(ODD):
            folder = os.path.join(self.dir, "commands", odd)
            os.makedirs(folder)
            program = os.path.join(folder, odd + "!")
            shutil.copy("/bin/sleep", program)
            report = self.idle(f"a{number}", program.replace("{", "{{"), "1000")
            self.assertEqual(os.readlink(f"/proc/{report['pid']}/exe"), program)
            self.assertEqual(words_of(report["pid"], "cmdline"), [program.encode(), b"1000"])
            self.down(f"a{number}")

    def test_placeholders_are_filled_and_braces_kept(self):
        report = self.idle("a", *IDLE, "{port}", "{home}", "{os_home}", "x{name}y", "{{port}", "{{")
        self.assertEqual(words_of(report["pid"], "cmdline")[len(IDLE) :],
                         [str(report["port"]).encode(), report["home"].encode(), report["os_home"].encode(), b"xay", b"{port}", b"{"])

    # --- paths ------------------------------------------------------------------------------------------------------------

    def exact_or_refused(self, name, odd, env, expected, *words, flags=()):
        """Byte-exact in the started process, or refused before anything is written."""
        done = self.pod("up", name, "--json", *flags, *words, env=env)
        if done.status != 0:
            self.assertEqual(done.status, 78, (odd, done))
            self.one_line(done)
            return False
        environment = environment_of(done.json["pid"])
        for key, value in expected.items():
            self.assertEqual(environment[key.encode()], value.encode(), (odd, key))
        return done.json

    def test_V03_V04_X20_homes_are_byte_exact(self):
        carried = 0
        for number, odd in enumerate(ODD):
            top = os.path.join(self.dir, f"planes{number}", odd)
            env = {"KIROCREW_POD_ROOT": os.path.join(top, "pods"), "KIROCREW_POD_ENV_DIR": os.path.join(top, "registry"),
                   "KIROCREW_POD_ARTIFACTS_DIR": os.path.join(top, "artifacts"), "KIROCREW_POD_UNIT_PREFIX": f"{self.prefix}x{number}"}
            home = os.path.join(top, "pods", "a")
            expected = {"KIROCREW_HOME": home, "KIROCREW_OS_HOME": f"{home}/os-home", "HOME": f"{home}/os-home", "KIRO_HOME": f"{home}/kiro",
                        "KIROCREW_WORKSPACE": f"{home}/workspace", "GH_CONFIG_DIR": f"{home}/.config/gh"}
            report = self.exact_or_refused("a", odd, env, expected, "--health", "none", "--", *IDLE, "{home}")
            if report:
                carried += 1
                self.assertEqual(report["home"], home)
                self.assertEqual(os.readlink(f"/proc/{report['pid']}/cwd"), f"{home}/workspace")
                self.assertEqual(words_of(report["pid"], "cmdline")[-1], home.encode())
                gone = self.pod("down", "a", env=env)
                self.assertEqual(gone.status, 0, (odd, gone))
                self.assertFalse(os.path.lexists(home))
            else:
                self.assertFalse(os.path.lexists(home), odd)
            self.forget_template(f"{self.prefix}x{number}")
        self.assertGreaterEqual(carried, len(ODD) - 3)

    def forget_template(self, prefix):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.expanduser(f"~/.config/systemd/user/{prefix}@.service"))

    def test_V03_V04_X20_checkouts_are_byte_exact(self):
        for number, odd in enumerate((*ODD, "co:lon")):
            checkout = os.path.join(self.dir, "checkouts", odd)
            os.makedirs(os.path.join(checkout, ".venv", "bin"))
            program = os.path.join(checkout, ".venv", "bin", "kirocrew")
            with open(program, "w") as script:
                script.write(KIROCREW)
            os.chmod(program, 0o755)
            name = f"a{number}"
            report = self.exact_or_refused(name, odd, {}, {"KIROCREW_PROJECT_DIR": checkout}, "--checkout", checkout)
            self.assertEqual(bool(report), ":" not in odd, odd)
            if not report:
                self.assertNotIn(name, self.ls())
                continue
            self.assertEqual(os.readlink(f"/proc/{report['pid']}/cwd"), checkout)
            self.assertIn(program.encode(), words_of(report["pid"], "cmdline"))
            path = environment_of(report["pid"])[b"PATH"]
            self.assertTrue(path.startswith(os.path.dirname(program).encode() + b":"), path)
            self.down(name)

    def test_X20_plane_settings_are_byte_exact(self):
        for number, odd in enumerate(ODD):
            prefix = f"{self.prefix}y{number}"
            env = {"KIROCREW_POD_PATH": f"/usr/bin:/bin:/x/{odd}", "KIROCREW_POD_KIRO_BIN": f"/x/{odd}", "KIROCREW_POD_UNIT_PREFIX": prefix}
            report = self.exact_or_refused("a", odd, env, {"PATH": f"/usr/bin:/bin:/x/{odd}", "KIROCREW_KIRO_BIN": f"/x/{odd}"}, "--health", "none", "--", *IDLE)
            if report:
                self.assertEqual(self.pod("down", "a", env=env).status, 0)
            else:
                self.assert_nothing_made()
            self.forget_template(prefix)

    def test_X21_bytes_that_are_not_utf8_are_refused_and_named(self):
        bad = os.fsdecode(b"no\xffutf8")
        refusals = (
            ({}, ("up", "a", "--", *IDLE, bad), "no\\xff"),
            ({}, ("up", "a", "--checkout", os.path.join(self.dir, bad)), "no\\xff"),
            ({"KIROCREW_POD_ROOT": os.path.join(self.dir, bad)}, ("up", "a", "--", *IDLE), "KIROCREW_POD_ROOT"),
            ({"KIROCREW_POD_ENV_DIR": os.path.join(self.dir, bad)}, ("up", "a", "--", *IDLE), "KIROCREW_POD_ENV_DIR"),
            ({"KIROCREW_POD_PATH": "/usr/bin:/" + bad}, ("up", "a", "--", *IDLE), "KIROCREW_POD_PATH"),
            ({"KIROCREW_POD_KIRO_BIN": "/" + bad}, ("up", "a", "--", *IDLE), "KIROCREW_POD_KIRO_BIN"),
            ({"KIROCREW_POD_UNIT_PREFIX": bad}, ("up", "a", "--", *IDLE), "KIROCREW_POD_UNIT_PREFIX"),
        )
        for env, words, named in refusals:
            refused = self.pod(*words, env=env)
            self.assertIn(refused.status, (2, 3, 78), (words, refused))
            self.assertIn(named, self.one_line(refused))
            self.assert_nothing_made()
        self.assertFalse(os.path.lexists(os.path.join(self.dir, bad)))

    # --- environment --------------------------------------------------------------------------------------------------------

    def test_X22_the_longest_variable_and_ten_thousand(self):
        longest = "x" * (131071 - len("BIG="))
        with self.base_environment({"BIG": longest} if BACKEND != "systemd" else {}):
            if BACKEND == "systemd":
                # Not by the command line of systemctl: it could not carry it either.
                self.systemctl_import("BIG", longest)
            report = self.idle("a")
            self.assertEqual(environment_of(report["pid"])[b"BIG"], longest.encode())
            self.down("a")
        many = {f"MANY_{number}": f"value {number}" for number in range(10000)}
        with self.base_environment(many):
            if BACKEND == "systemd":
                self.systemctl("unset-environment", "BIG")
            report = self.idle("a")
            seen = environment_of(report["pid"])
            self.assertEqual({k: v for k, v in seen.items() if k.startswith(b"MANY_")}, {k.encode(): v.encode() for k, v in many.items()})

    def systemctl_import(self, name, value):
        subprocess.run(["systemctl", "--user", "import-environment", name], env={**os.environ, name: value}, check=True)

    def test_X22_a_variable_that_the_kernel_cannot_carry_is_refused(self):
        # The tool itself can still be given it; with its own words before it, the payload cannot.
        path = "/usr/bin:/bin:/" + "x" * (131071 - len("KIROCREW_POD_PATH=/usr/bin:/bin:/"))
        checkout = os.path.join(self.dir, "c" * 100)
        os.makedirs(os.path.join(checkout, ".venv", "bin"))
        program = os.path.join(checkout, ".venv", "bin", "kirocrew")
        with open(program, "w") as script:
            script.write(KIROCREW)
        os.chmod(program, 0o755)
        refused = self.pod("up", "a", "--checkout", checkout, env={"KIROCREW_POD_PATH": path})
        self.assertEqual(refused.status, 78, refused)
        self.assertIn("PATH", self.one_line(refused))
        self.assert_nothing_made()

    def test_X23_secrets_stay_with_the_operator(self):
        removed = ("SLACK_X", "WECOM_SECRET", "MICROSOFT_APP_PASSWORD", "FEISHU_KEY", "JIRA_TOKEN_X", "KIROCREW_BOUND_Y", "MY_TOKEN", "GITHUB_TOKEN",
                   "TELEGRAM_BOT_TOKEN", "DISCORD_BOT_TOKEN", "WEBEX_BOT_TOKEN", "WEIXIN_TOKEN", "JIRA_API_TOKEN", "AZURE_DEVOPS_EXT_PAT",
                   "BITBUCKET_EMAIL", "BITBUCKET_API_TOKEN")
        kept = ("AWS_SESSION_TOKEN", "AWS_SECRET_ACCESS_KEY", "KIRO_API_KEY", "KIROCREW_OWNER_ID", "TOKEN_NOT_AT_THE_END")
        secret = "s3cret-" + self.prefix
        with self.base_environment({name: f"{secret}-{name}" for name in (*removed, *kept)}):
            report = self.idle("a", PYTHON, "-c", "import time; print('ready', flush=True); time.sleep(1000)")
            failed = self.pod("up", "b", "--", "/bin/sh", "-c", "exit 3; : {port}")
            self.assertNotEqual(failed.status, 0)
            self.assertNotIn(secret, failed.out + failed.err)
            child = environment_of(report["pid"])
            self.assertEqual([name for name in removed if name.encode() in child], [])
            self.assertEqual([name for name in kept if child.get(name.encode()) != f"{secret}-{name}".encode()], [])
            for words in (("ls", "--json"), ("status", "a", "--json"), ("logs", "a"), ("env", "a"), ("render", "a", "--for", "systemd"),
                          ("render", "a", "--for", "launchd")):
                done = self.pod(*words)
                self.assertEqual(done.status, 0, (words, done))
                self.assertNotIn(secret, done.out + done.err)
            self.assert_unwritten(secret.encode(), report["pid"])

    def assert_unwritten(self, secret, pid):
        for top in (self.dir, os.path.expanduser("~/.config/systemd/user")):
            for where, _, files in os.walk(top):
                for entry in files:
                    path = os.path.join(where, entry)
                    if not stat.S_ISREG(os.lstat(path).st_mode):
                        continue
                    with open(path, "rb") as content:
                        self.assertNotIn(secret, content.read(), path)
                    if where.startswith((self.pods_dir, self.artifacts)):
                        self.assertEqual(os.lstat(path).st_mode & 0o177, 0, path)
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{entry}/cmdline", "rb") as words:
                if int(entry) != os.getpid():
                    self.assertNotIn(secret, words.read())

    # --- what is rendered -----------------------------------------------------------------------------------------------------

    def test_render_for_systemd_passes_systemds_own_judge(self):
        for number, odd in enumerate(("plain", "100%25", "$HOME", "a b", "it's", 'quote"d', "ü")):
            prefix = f"{self.prefix}z{number}"
            env = {"KIROCREW_POD_ROOT": os.path.join(self.dir, odd), "KIROCREW_POD_UNIT_PREFIX": prefix}
            rendered = self.pod("render", "demo", "--for", "systemd", env=env)
            self.assertEqual((rendered.status, rendered.err), (0, ""), rendered)
            unit = os.path.join(self.dir, f"{prefix}@.service")
            with open(unit, "w") as text:
                text.write(rendered.out)
            judged = subprocess.run(["systemd-analyze", "--user", "verify", "--man=no", os.path.join(self.dir, f"{prefix}@demo.service")],
                                    env={"XDG_RUNTIME_DIR": self.dir, **os.environ, "SYSTEMD_UNIT_PATH": f"{self.dir}:"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            said = [line for line in judged.stdout.decode().splitlines() if prefix in line]
            self.assertEqual((judged.returncode, said), (0, []), judged.stdout.decode())
        self.assertFalse(os.path.exists(self.root))
        self.assertFalse(os.path.exists(self.pods_dir))

    def test_install_makes_the_plane_and_says_where(self):
        done = self.pod("install")
        self.assertEqual((done.status, done.err), (0, ""), done)
        self.assertIn(self.root, done.out)
        self.assertIn(f"ports {self.base_port + 1} to", done.out)
        for made in (self.root, self.pods_dir):
            self.assertEqual(os.stat(made).st_mode & 0o7777, 0o700)
        unit = os.path.expanduser(f"~/.config/systemd/user/{self.prefix}@.service")
        self.assertEqual(os.path.exists(unit), BACKEND == "systemd")
        again = self.pod("install")
        self.assertEqual((again.status, again.out), (0, done.out), again)
        self.assertEqual(self.ls(), {})
        self.idle("a")

    def test_env_is_read_back_by_a_shell(self):
        top = os.path.join(self.dir, "it's $HOME `x` \"q\" \\")
        env = {"KIROCREW_POD_ROOT": top, "KIROCREW_POD_UNIT_PREFIX": self.prefix + "e"}
        done = self.pod("up", "a", "--health", "none", "--", *IDLE, env=env)
        self.assertEqual(done.status, 0, done)
        lines = self.pod("env", "a", env=env).out
        seen = subprocess.run(["/bin/sh", "-c", f"{lines}\nprintf %s \"$KIROCREW_HOME\""], stdout=subprocess.PIPE, check=True).stdout.decode()
        self.assertEqual(seen, os.path.join(top, "a"))
        self.assertEqual(self.pod("down", "a", env=env).status, 0)
        self.forget_template(self.prefix + "e")


if __name__ == "__main__":
    unittest.main()
