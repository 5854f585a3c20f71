"""What is measured. Each yields rows: name, unit, our figures, the others', what they are beside, a note; or a mapping that is printed by its keys."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time

import peers
from stage import CannotRun, UntilItFails, answers, cpu_of, free_port, listens, run, summary, timed, wait_for


def start(here):
    """The program's own start-up: every verb pays it once, `up` of the embedded backend three times."""
    ours, theirs = [], []
    for _ in range(here.rounds * 4):
        ours.append(cpu_of(lambda: run([here.program, "--version"])))
        theirs.append(cpu_of(lambda: run(["/bin/true"])))
    yield "start-up, processor time", "ms", ours, theirs, "/bin/true"


def make_pods(here, count):
    os.makedirs(here.env["KIROCREW_POD_ENV_DIR"], mode=0o700, exist_ok=True)
    for number in range(count):
        os.makedirs(f"{here.env['KIROCREW_POD_ROOT']}/p{number}/os-home", mode=0o700)
        with open(f"{here.env['KIROCREW_POD_ENV_DIR']}/p{number}.env", "w") as record:
            record.write(f"PORT='{20001 + number % 9000}'\nPORT_AUTO='{20001 + number % 9000}'\nEXEC='[\"/bin/sleep\",\"1000\"]'\n")


def remove_pods(here, count):
    """By hand: 1,000 `down` would take longer than all that is measured."""
    for number in range(count):
        shutil.rmtree(f"{here.env['KIROCREW_POD_ROOT']}/p{number}")
        os.unlink(f"{here.env['KIROCREW_POD_ENV_DIR']}/p{number}.env")


def listed(here, name, count):
    """Beside the least that the kernel has to be asked (tests/programs/ls_floor.c), which knows of no other backend than embedded."""
    wall, cpu, table, floor = [], [], [], []
    least = [os.path.join(here.programs, "ls_floor"), here.env["KIROCREW_POD_ROOT"], here.env["KIROCREW_POD_ENV_DIR"]]
    for turn in range(here.rounds + 1):
        found = []
        wall.append(timed(lambda: found.append(here.pod("ls", "--json"))))
        if found[0].count('"name":') != count:
            raise CannotRun(f"ls lists {found[0].count(chr(34) + 'name' + chr(34) + ':')} pods, not {count}")
        table.append(timed(lambda: found.append(here.pod("ls"))))
        if found[1].count("\n") != count + 1:
            raise CannotRun(f"ls prints {found[1].count(chr(10))} lines for {count} pods")
        cpu.append(cpu_of(lambda: here.pod("ls", "--json")))
        if here.env["KIROCREW_POD_BACKEND"] == "embedded":
            floor.append(timed(lambda: run(least)))
    yield name, "ms", table[1:], floor[1:], "its system calls alone"
    yield f"  {name}, --json", "ms", wall[1:]
    yield f"  {name}, --json, processor time", "ms", cpu[1:]


def ls(here):
    """`ls` with 1,000 homes and records, and with 10,000."""
    make_pods(here, 1000)
    yield from listed(here, "ls, 1,000 pods", 1000)
    shutil.rmtree(here.env["KIROCREW_POD_ROOT"])
    shutil.rmtree(here.env["KIROCREW_POD_ENV_DIR"])
    make_pods(here, 10000)
    yield from listed(here, "ls, 10,000 pods", 10000)
    shutil.rmtree(here.env["KIROCREW_POD_ROOT"])
    shutil.rmtree(here.env["KIROCREW_POD_ENV_DIR"])
    here.used = False


def ls_running(here):
    """`ls` with 1,000 homes and records, 100 of them running and asked for their health, embedded."""
    for number in range(100):
        here.pod("up", f"run{number}", "--", here.server, "{port}")
    make_pods(here, 900)
    yield from listed(here, f"ls, 1,000 pods, 100 run ({here.env['KIROCREW_POD_BACKEND']})", 1000)
    remove_pods(here, 900)


def ls_systemd(here):
    """The same on systemd."""
    here.systemd()
    yield from ls_running(here)


USED_S = 0.1  # a pod is used for a moment before it is taken down; in one that was changed within 35 ms `down` waits for a writer to come back


def bare_up(here):
    port = free_port()
    process = []
    took = timed(lambda: (process.append(subprocess.Popen([here.server, str(port)])), answers(port)))
    return took, process[0]


def bare_down(process, home):
    process.send_signal(signal.SIGTERM)
    process.wait()
    shutil.rmtree(home, ignore_errors=True)


def least_up(here):
    """tests/programs/up_floor.c, which knows of nothing but what it has to do."""
    root, pods_dir, said = here.path("floor-root"), here.path("floor-registry"), []
    for directory in (root, pods_dir):
        os.makedirs(directory)
    took = timed(lambda: said.append(run([os.path.join(here.programs, "up_floor"), root, pods_dir, here.server, str(free_port())])))
    os.kill(int(said[0]), signal.SIGKILL)
    wait_for(lambda: not os.path.exists(f"{pods_dir}/floor.sock"), "the keeper of up_floor does not end")
    for directory in (root, pods_dir):
        shutil.rmtree(directory)
    return took


def embedded(here):
    """`up` and `down`, embedded, over the bare payload: start to ready, and until nothing is left. `up` also beside the least that it has to do."""
    ups, bare_ups, least, downs = [], [], [], []
    for turn in range(here.rounds + 1):
        bare, process = bare_up(here)
        bare_ups.append(bare)
        bare_down(process, here.path("none"))
        least.append(least_up(here))
        ups.append(timed(lambda: here.pod("up", "one", "--health", "http", "--", here.server, "{port}")))
        time.sleep(USED_S)
        downs.append(timed(lambda: here.pod("down", "one")))
    yield "up, embedded", "ms", ups[1:], bare_ups[1:], "the bare payload"
    yield "  beside the least of three programs, a home and a record", "ms", ups[1:], least[1:], "up_floor"
    yield "down, embedded", "ms", downs[1:]


def run_unit(here, port):
    run(["systemd-run", "--user", "--quiet", "--collect", f"--unit={here.prefix}-peer", here.server, str(port)])
    answers(port)


def systemd(here):
    """`up` and `down`, systemd, against systemd-run, systemctl stop and rm -rf."""
    here.systemd()
    here.need("systemd-run")
    ups, downs, their_ups, their_downs, home = [], [], [], [], here.path("home")
    for turn in range(here.rounds + 1):
        port = free_port()
        their_ups.append(timed(lambda: run_unit(here, port)))
        os.makedirs(f"{home}/os-home/.aws/sso/cache")
        their_downs.append(timed(lambda: (run(["systemctl", "--user", "stop", f"{here.prefix}-peer"]), run(["rm", "-rf", home]))))
        ups.append(timed(lambda: here.pod("up", "one", "--health", "http", "--", here.server, "{port}")))
        time.sleep(USED_S)
        downs.append(timed(lambda: here.pod("down", "one")))
    yield "up, systemd", "ms", ups[1:], their_ups[1:], "systemd-run --user and the same wait"
    yield "down, systemd", "ms", downs[1:], their_downs[1:], "systemctl --user stop, rm -rf"


class Beside(UntilItFails):
    """A peer and its figures."""

    def __init__(self, peer, ending):
        self.peer, self.ups, self.downs = peer, [], []
        ending.callback(peer.end)
        self.does(peer.prepare)

    def once(self):
        self.peer.port = free_port()
        self.peer.make_home()
        up = timed(self.peer.up)
        answers(self.peer.port)
        time.sleep(USED_S)
        down = timed(self.peer.down)
        if os.path.exists(self.peer.home):
            raise CannotRun("its home is left")
        if listens(self.peer.port):
            raise CannotRun("its server is left")
        self.ups.append(up)
        self.downs.append(down)

    def data(self, over):
        if self.why_not:
            return {"name": self.peer.name, "skipped": self.why_not}
        return {"name": self.peer.name, "up": summary(self.ups[1:]), "down": summary(self.downs[1:]),
                "up_ratio": ratio(self.ups[1:], over.ups[1:]), "down_ratio": ratio(self.downs[1:], over.downs[1:])}


def ratio(figures, over):
    """Of the medians; the least and the most of a round."""
    if not figures or len(figures) != len(over):
        return None
    each = [one / other for one, other in zip(figures, over)]
    return {"median": summary(figures)["median"] / summary(over)["median"], "min": min(each), "max": max(each)}


def instead(here):
    """`up` and `down` of one server in what people would use instead: all of them in each round."""
    with contextlib.ExitStack() as ending:
        field = [Beside(peer(here), ending) for peer in peers.ALL]
        for turn in range(here.rounds + 1):
            for one in field:
                one.does(one.once)
    over = next(one for one in field if type(one.peer) is peers.Embedded)
    yield {"name": "up and down of one server", "unit": "ms", "rounds": here.rounds, "over": over.peer.name, "peers": [one.data(over) for one in field]}


def make_tree(top, directories, files, size):
    for directory in range(directories):
        os.makedirs(f"{top}/d{directory}")
        for name in range(files):
            with open(f"{top}/d{directory}/f{name}", "wb") as out:
                out.write(b"x" * size)


def timed_at_rest(what):
    """What was written before is on the disk first, or its journal would be written while the clock runs."""
    os.sync()
    return timed(what)


def down_tree(here):
    """`down` of a home with 100,000 files in 1,000 directories against rm -rf of the same tree."""
    ours, theirs = [], []
    for turn in range(3):
        make_tree(here.path("tree"), 1000, 100, 10)
        theirs.append(timed_at_rest(lambda: run(["rm", "-rf", here.path("tree")])))
        here.pod("up", "one", "--health", "none", "--", "/bin/sleep", "1000")
        make_tree(f"{here.env['KIROCREW_POD_ROOT']}/one/tree", 1000, 100, 10)
        ours.append(timed_at_rest(lambda: here.pod("down", "one")))
    yield "down, a home with 100,000 files", "ms", ours, theirs, "rm -rf"


def seed(here):
    """`up --seed` of a scenario with 10,000 files (1 GB), as the time over an `up` without one, against cp -a."""
    program = here.path("prefix/bin/kirocrew-pod")
    os.makedirs(os.path.dirname(program))
    shutil.copy2(here.program, program)
    scenario = here.path("prefix/share/kirocrew-pod/scenarios/big")
    make_tree(scenario, 100, 100, 102400)
    with open(f"{scenario}/fixture.yaml", "w") as marker:
        marker.write("fixture-name: big\n")
    ours, theirs = [], []
    for turn in range(4):
        theirs.append(timed_at_rest(lambda: run(["cp", "-a", scenario, here.path("copy")])))
        shutil.rmtree(here.path("copy"))
        here.used = True
        words = ["--health", "none", "--", "/bin/sleep", "1000"]
        plain = timed(lambda: run([program, "up", "plain", *words], here.env))
        seeded = timed_at_rest(lambda: run([program, "up", "one", "--seed", "big", *words], here.env))
        ours.append(seeded - plain)
        run([program, "down", "one", "plain"], here.env)
    yield "seed, 10,000 files, 1 GB", "ms", ours[1:], theirs[1:], "cp -a"


def snapshot(here):
    """A snapshot of a 200 MB live database against `sqlite3 SRC ".backup DST"`; more ways in snapshot.sh."""
    here.need("sqlite3")
    here.need("/usr/bin/time")
    once = os.path.join(here.programs, "snapshot_once")
    source = here.path("src.sqlite3")
    run(["sqlite3", source, "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; CREATE TABLE t(b TEXT, c BLOB); CREATE INDEX i ON t(b);"
         "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 180000) INSERT INTO t SELECT hex(randomblob(16)),"
         " randomblob(1000) FROM n; PRAGMA wal_checkpoint(TRUNCATE);"])
    owner = subprocess.Popen(["sqlite3", source], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    owner.stdin.write("INSERT INTO t SELECT hex(randomblob(16)), randomblob(1000) FROM (SELECT 1 UNION SELECT 2);\n")
    owner.stdin.flush()
    time.sleep(0.5)
    try:
        yield from compare_snapshots(here, source, once)
    finally:
        owner.stdin.close()
        owner.wait()


def compare_snapshots(here, source, once):
    ways = {"ours": [once, "ours", source, here.path("dst")], "theirs": ["sqlite3", source, f".backup {here.path('dst')}"]}
    took, peak = {way: [] for way in ways}, {way: [] for way in ways}
    for turn in range(6):
        for way, command in ways.items():
            took[way].append(timed(lambda: run(["/usr/bin/time", "-f", "%M", "-o", here.path("peak"), *command])))
            with open(here.path("peak")) as said:
                peak[way].append(int(said.read()))
            os.unlink(here.path("dst"))
    size = os.path.getsize(source) >> 20
    yield f"snapshot, {size} MiB, its owner connected", "ms", took["ours"][1:], took["theirs"][1:], "sqlite3 .backup"
    yield "  its peak of memory", "KiB", peak["ours"], peak["theirs"], "sqlite3 .backup"


def exchange(command, *messages):
    """A server's own answer: started, spoken to, ended."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for message in messages:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")) + "\n")
        process.stdin.flush()
        if "id" in message and not process.stdout.readline():
            raise CannotRun(f"{command[0]} does not answer")
    process.kill()
    process.wait()


HELLO = {"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}}


def mcp(here):
    """The MCP probe over the server's own handshake, and against the inspector."""
    here.need("bwrap")
    report = json.loads(here.pod("up", "one", "--json", "--seed", "connections-two", "--health", "none", "--", "/bin/sleep", "1000"))
    server = ["/bin/sh", f"{report['home']}/kiro/mcp/server.sh", "notes", "read_note", "List or read the notes of this pod"]
    ours, theirs, reported, inspected, inspector = [], [], [], [], UntilItFails()
    program = inspector.does(lambda: here.options.inspector or peers.installed(here, "mcp-inspector"))
    for turn in range(here.rounds + 1):
        theirs.append(timed(lambda: exchange(server, HELLO, {"method": "notifications/initialized"}, {"id": 1, "method": "tools/list"})))
        said = []
        ours.append(timed(lambda: said.append(here.pod("probe", "one", "notes", "--json"))))
        reported.append(json.loads(said[0])["mcp"][0]["ms"])
        if turn < 5:
            inspected.append(inspector.does(lambda: timed(lambda: run([program, "--cli", *server, "--method", "tools/list"], timeout=120))))
    yield "probe of an MCP server, whole process", "ms", ours[1:], theirs[1:], "the server's own handshake"
    yield "  as the result says", "ms", reported[1:]
    if inspector.why_not:
        yield {"name": "  against the inspector", "skipped": inspector.why_not}
    else:
        yield "  against the inspector", "ms", ours[1:], inspected[1:], "inspector --cli, tools/list"


def agent(here):
    """The viability probe over the agent's own answer."""
    here.need("bwrap")
    fake = os.path.join(here.programs, "fake_agent")
    with open(here.path("pod.ini"), "w") as ini:
        ini.write(f"[agent]\nexec = {fake} at-once\n")
    config = ["--config", here.path("pod.ini")]
    here.used = True
    run([here.program, *config, "up", "one", "--health", "none", "--", "/bin/sleep", "1000"], here.env)
    ask = {"id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
    ours, theirs, reported = [], [], []
    for turn in range(here.rounds + 1):
        theirs.append(timed(lambda: exchange([fake, "at-once"], ask)))
        said = []
        ours.append(timed(lambda: said.append(run([here.program, *config, "probe", "one", "--agent", "--json"], here.env))))
        reported.append(json.loads(said[0])["agent"]["ms"])
    yield "viability probe, whole process", "ms", ours[1:], theirs[1:], "the agent's own answer"
    yield "  as the result says", "ms", reported[1:]


def private_kib(pid):
    with open(f"/proc/{pid}/smaps_rollup") as rollup:
        return sum(int(line.split()[1]) for line in rollup if line.startswith("Private_"))


def keeper(here):
    """Private memory of a keeper (Private_* of smaps_rollup)."""
    private = []
    for number in range(5):
        pid = json.loads(here.pod("up", f"k{number}", "--json", "--", here.server, "{port}"))["pid"]
        with open(f"/proc/{pid}/stat") as stat:
            private.append(private_kib(int(stat.read().rpartition(")")[2].split()[1])))
    yield "keeper, private memory", "KiB", private


def crowd(here):
    """`up` with 1,000 pods alive against `up` with none."""
    words = ["--health", "http", "--", here.server, "{port}"]
    alone, among = [], []
    for turn in range(here.rounds):
        alone.append(timed(lambda: here.pod("up", "one", *words)))
        here.pod("down", "one")
    for number in range(1000):
        here.pod("up", f"c{number}", *words)
    for turn in range(here.rounds):
        among.append(timed(lambda: here.pod("up", "one", *words)))
        here.pod("down", "one")
    yield "up with 1,000 pods alive", "ms", among, alone, "with none (not alternating)"


ALL = [start, ls, ls_running, ls_systemd, embedded, systemd, instead, crowd, down_tree, seed, snapshot, agent, mcp, keeper]
