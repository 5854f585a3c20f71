"""What people would use instead. Each brings up the same server on a port and takes it and its home away again; whatever it keeps lies below the stage.

A peer's home is made before the clock runs and deleted within `down`, as a pod's is. Where there is a choice, the peer has the quicker one."""

import json
import os
import resource
import select
import shutil
import signal
import subprocess

from stage import CannotRun, answers, free_port, run, wait_for

WHERE_FROM = {"supervisord": "supervisor", "mcp-inspector": "inspector"}  # a program and its name in packages.sh, where they differ


def installed(here, program):
    """The path of a peer's program: as packages.sh put it, or as the host has it."""
    for place in ("debian/usr/bin", "pm2/node_modules/.bin", "inspector/node_modules/.bin"):
        path = os.path.join(here.options.peers, place, program)
        if os.access(path, os.X_OK):
            return path
    if shutil.which(program):
        return shutil.which(program)
    try:
        with open(os.path.join(here.options.peers, "why", WHERE_FROM.get(program, program))) as why:
            raise CannotRun(f"could not be installed: {why.read().strip()}")
    except FileNotFoundError:
        raise CannotRun("is not installed; tests/bench/packages.sh fetches it") from None


def end(pid):
    """Ends a daemon that is not our child, and waits until it has ended."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            signal.pidfd_send_signal(process, number)
        except ProcessLookupError:
            break
        if select.select([process], [], [], 5)[0]:
            break
    os.close(process)


class Peer:
    """up() returns when the server answers on self.port, down() when nothing of it is left; prepare() and end() are not timed."""

    name = ""

    def __init__(self, here):
        self.here, self.port = here, 0
        self.top = here.path(type(self).__name__.lower())
        self.home = os.path.join(self.top, "home")
        os.makedirs(self.top)
        self.env = {**here.env, "HOME": self.top}

    def prepare(self):
        """Starts what serves many; CannotRun says why not."""

    def make_home(self):
        os.makedirs(f"{self.home}/os-home/.aws/sso/cache")

    def delete_home(self):
        shutil.rmtree(self.home)

    def end(self):
        """Ends what prepare() started."""


class Bare(Peer):
    name = "the bare process"
    process = None

    def up(self):
        self.process = subprocess.Popen([self.here.server, str(self.port)])
        answers(self.port)

    def down(self):
        self.end()
        self.delete_home()

    def end(self):
        if self.process:
            self.process.terminate()
            self.process.wait()


class Embedded(Peer):
    name, backend = "kirocrew-pod, embedded", "embedded"

    def make_home(self):
        """`up` makes it."""

    def up(self):
        self.here.pod("up", self.backend, "--backend", self.backend, "--port", str(self.port), "--health", "http", "--", self.here.server, "{port}")

    def down(self):
        self.here.pod("down", self.backend)


class Systemd(Embedded):
    name, backend = "kirocrew-pod, systemd", "systemd"

    def prepare(self):
        self.here.need_user_manager()


class SystemdRun(Peer):
    name, unit = "systemd-run --user", None

    def prepare(self):
        self.here.need_user_manager()
        self.unit = f"{self.here.prefix}-beside"
        self.name = f"systemd-run --user {run(['systemd-run', '--version']).split()[1]}"

    def up(self):
        run(["systemd-run", "--user", "--quiet", "--collect", f"--unit={self.unit}", self.here.server, str(self.port)])
        answers(self.port)

    def down(self):
        run(["systemctl", "--user", "stop", self.unit])
        self.delete_home()

    def end(self):
        if self.unit:
            subprocess.run(["systemctl", "--user", "stop", self.unit], stderr=subprocess.DEVNULL)


class Pm2(Peer):
    """Its daemon runs already. The logs and the pid file go into the home, so that they are gone with it."""

    name = "pm2"

    def prepare(self):
        self.program = installed(self.here, "pm2")
        self.env.update(PM2_HOME=os.path.join(self.top, "daemon"), PM2_DISABLE_VERSION_CHECK="true")
        run([self.program, "ping"], self.env)
        self.name = f"pm2 {run([self.program, '--version'], self.env).split()[-1]}"

    def up(self):
        run([self.program, "start", self.here.server, "--silent", "--name", "one", "--interpreter", "none", "--output", f"{self.home}/out",
             "--error", f"{self.home}/err", "--pid", f"{self.home}/pid", "--", str(self.port)], self.env)
        answers(self.port)

    def down(self):
        run([self.program, "delete", "one", "--silent"], self.env)
        self.delete_home()

    def end(self):
        try:
            with open(os.path.join(self.top, "daemon", "pm2.pid")) as pid:
                end(int(pid.read()))
        except FileNotFoundError:
            pass


class Supervisor(Peer):
    """Its daemon runs already; `supervisorctl update` starts what has a file, and stops and forgets what has none any more."""

    name, daemon = "supervisor", None

    def prepare(self):
        program = installed(self.here, "supervisord")
        self.control = [os.path.join(os.path.dirname(program), "supervisorctl"), "-c", f"{self.top}/supervisord.conf"]
        if program.startswith(self.here.options.peers):
            self.env["PYTHONPATH"] = os.path.join(self.here.options.peers, "debian/usr/lib/python3/dist-packages")
        self.name = f"supervisor {run([program, '--version'], self.env).strip()}"
        os.mkdir(f"{self.top}/programs")
        with open(f"{self.top}/supervisord.conf", "w") as conf:
            conf.write(f"[supervisord]\nnodaemon=true\nlogfile={self.top}/log\npidfile={self.top}/pid\nchildlogdir={self.top}\n"
                       f"[unix_http_server]\nfile={self.top}/socket\n[supervisorctl]\nserverurl=unix://{self.top}/socket\n"
                       "[rpcinterface:supervisor]\nsupervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface\n"
                       f"[include]\nfiles={self.top}/programs/*.conf\n")
        self.daemon = subprocess.Popen([program, "-c", f"{self.top}/supervisord.conf"], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: os.path.exists(f"{self.top}/socket"), "supervisord does not open its socket")

    def up(self):
        with open(f"{self.top}/programs/one.conf", "w") as conf:
            conf.write(f"[program:one]\ncommand={self.here.server} {self.port}\nstdout_logfile={self.home}/out\nstderr_logfile={self.home}/err\n")
        run([*self.control, "update"], self.env)
        answers(self.port)

    def down(self):
        os.unlink(f"{self.top}/programs/one.conf")
        run([*self.control, "update"], self.env)
        self.delete_home()

    def end(self):
        if self.daemon:
            self.daemon.terminate()
            self.daemon.wait()


class Podman(Peer):
    """The home is the container's root file system, so no image has to be unpacked. PID 1 of a container has no handler for SIGTERM: it is killed at
    once (`rm --time 0`). The limits are those that a plain user has, because raising them needs a capability."""

    name, command, extra, not_there = "podman", None, [], []
    choices = ([], ["--cgroups=disabled"])
    made_by_it = ("/run/crun", "/run/containers/networks", "/run/containers")

    def prepare(self):
        program = installed(self.here, "podman")
        self.not_there = [path for path in self.made_by_it if not os.path.exists(path)]
        self.write_conf()
        self.command = [program, "--tmpdir", f"{self.top}/tmp", "--runtime-flag", f"root={self.top}/crun"]
        self.limits = [f"--ulimit={name}={value}:{value}" for name, what in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC))
                       for value in [self.limit(what)]]
        version = run([program, "--version"], self.env).split()[-1]
        self.choose()
        self.name = " ".join([f"podman {version}", *self.extra])

    @staticmethod
    def limit(what):
        hard = resource.getrlimit(what)[1]
        return 1024 if hard == resource.RLIM_INFINITY else min(hard, 1024)

    def write_conf(self):
        unpacked = os.path.join(self.here.options.peers, "debian/usr")
        with open(f"{self.top}/containers.conf", "w") as conf:
            conf.write('[containers]\nlog_driver = "k8s-file"\n'
                       '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\nlock_type = "file"\nruntime = "crun"\n'
                       f"helper_binaries_dir = {json.dumps([unpacked + '/lib/podman', '/usr/libexec/podman', '/usr/lib/podman'])}\n"
                       f"conmon_path = {json.dumps([unpacked + '/bin/conmon', '/usr/bin/conmon'])}\n"
                       f"[engine.runtimes]\ncrun = {json.dumps([unpacked + '/bin/crun', '/usr/bin/crun'])}\n"
                       f'[network]\nnetwork_backend = "netavark"\nnetwork_config_dir = "{self.top}/net"\n')
        with open(f"{self.top}/storage.conf", "w") as conf:
            conf.write(f'[storage]\ndriver = "vfs"\ngraphroot = "{self.top}/root"\nrunroot = "{self.top}/runroot"\n')
        open(f"{self.top}/registries.conf", "w").close()
        self.env.update(CONTAINERS_CONF=f"{self.top}/containers.conf", CONTAINERS_STORAGE_CONF=f"{self.top}/storage.conf",
                        CONTAINERS_REGISTRIES_CONF=f"{self.top}/registries.conf")

    def choose(self):
        """The first choice of flags with which a container runs here; why the first does not, if none does."""
        failures = []
        for self.extra in self.choices:
            self.port = free_port()
            self.make_home()
            try:
                self.up()
                return self.down()
            except CannotRun as why:
                failures.append(why)
                self.remove()
                self.delete_home()
        raise failures[0]

    def remove(self):
        """Whatever is left of a container, if there is one."""
        subprocess.run([*self.command, "rm", "--force", "--time", "0", "one"], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def make_home(self):
        super().make_home()
        shutil.copy2(self.here.server, f"{self.home}/server")

    def up(self):
        run([*self.command, "run", "--detach", "--name", "one", "--network", "host", *self.limits, *self.extra, "--rootfs", self.home, "/server",
             str(self.port)], self.env)
        answers(self.port)

    def down(self):
        run([*self.command, "rm", "--force", "--time", "0", "one"], self.env)
        self.delete_home()

    def end(self):
        if self.command:
            self.remove()
        try:
            with open(f"{self.top}/tmp/pause.pid") as pid:  # what holds the user namespace of a plain user's containers
                end(int(pid.read()))
        except FileNotFoundError:
            pass
        for path in self.not_there:
            try:
                os.rmdir(path)
            except OSError:
                pass


ALL = [Bare, Embedded, Systemd, SystemdRun, Pm2, Supervisor, Podman]
