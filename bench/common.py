# SPDX-License-Identifier: Apache-2.0
"""What the benches share: a daemon on a simulated card, the CPU time and memory of its processes, figures, the result."""

import contextlib
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "e2e"))
BUILD = os.path.abspath(os.environ.get("LESSOR_BUILD_DIR") or os.path.join(HERE, "..", "build"))


def program(name):
    path = os.path.join(BUILD, "bench", name)
    if not os.access(path, os.X_OK):
        raise SystemExit(f"bench: {path} is not built; ./dev bench builds it, or LESSOR_BUILD_DIR names another build")
    return path


# ---- figures ----

def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(len(values) * q))]


def spread(values, digits=1):
    return {"n": len(values), "p50": round(statistics.median(values), digits), "p99": round(quantile(values, 0.99), digits),
            "max": round(max(values), digits)}


def file_system(path):
    answer = subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, text=True)
    return answer.stdout.strip() or "unknown"


def machine(path="/tmp"):
    """What a figure depends on. The load says whether others were at work meanwhile."""
    model = "unknown"
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), model)
    return {"cores": os.cpu_count(), "cpu": model, "kernel": platform.release(), "file_system": file_system(path),
            "load": round(os.getloadavg()[0], 2)}


def commit():
    """Of the source; with + where files of it differ from that commit."""
    def git(*words):
        return subprocess.run(["git", "-C", HERE, *words], capture_output=True, text=True).stdout.strip()
    name = git("rev-parse", "--short", "HEAD")
    return (name or "unknown") + ("+" if git("status", "--porcelain", "--untracked-files=no", "--", "../src", ".") else "")


def result(name, ratio, bound, ok, raw, reference, samples=None):
    """The one object that --json prints. `ratio` is what is held to `bound`; samples only where --raw asked for them."""
    out = {"name": name, "ratio": round(ratio, 6), "bound": bound, "ok": ok, "raw": raw, "reference": reference,
           "commit": commit(), "machine": machine()}
    if samples is not None:
        out["samples"] = samples
    return out


# ---- processes ----

def cpu_ns(pids):
    """Time on a CPU of all threads of these processes, by the scheduler's own clock."""
    total = 0
    for pid in pids:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
                total += int(file.read().split()[0])
    return total


def rss_anon_bytes(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon:"))


def family(pid):
    """{program: pid} of the daemon and of those of its descendants that are parts of lessor: the eyes, the hands."""
    children, names = {}, {}
    for other in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{other}/stat", encoding="ascii", errors="replace") as file:
                head, tail = file.read().rsplit(")", 1)
            children.setdefault(int(tail.split()[1]), []).append(int(other))
            names[int(other)] = head.split("(", 1)[1]
    found, ask = {}, [pid]
    while ask:
        one = ask.pop()
        if names.get(one, "").startswith("lessor"):
            found[f"{names[one]}-{one}" if names[one] in found else names[one]] = one
        ask += children.get(one, [])
    return found


@contextlib.contextmanager
def helper(name, *arguments, on=None):
    """A program of this folder that says when it is ready, and ends with its input; with @on it sees that place's card.
    Gives the process and what it said."""
    words = [program(name), *map(str, arguments)]
    if on:
        from lessor_fixtures import SIMGPU
        words = [SIMGPU, "run", "--file", on.card, "--", *words]
    p = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        said = p.stdout.readline().split()
        if not said or said[0] != "ready":
            raise SystemExit(f"bench: {name} did not start")
        yield p, said[1:]
    finally:
        p.stdin.close()
        p.terminate()
        p.wait()
        p.stdout.close()


def looks_begin(looker, n):
    """Lets a bench_looker look n times while something else is measured."""
    looker.stdin.write(f"{n}\n")
    looker.stdin.flush()


def looks_end(looker):
    """Waits for it. CPU time of one look, in ns: the driver's own."""
    return int(looker.stdout.readline())


@contextlib.contextmanager
def place(conf="", card=("--gpus", "1", "--memory", "3G")):
    """A daemon of this bench's own in a private folder below /tmp, on a simulated card."""
    from lessor_fixtures import Place
    p = Place(*card)
    try:
        if conf:
            p.conf(conf)
        p.start()
        yield p
    finally:
        p.close()


@contextlib.contextmanager
def session(conf="", card=("--gpus", "1", "--memory", "3G")):
    """The same, placed as a person's own session has it: what is for this boot alone (socket, records of parked processes) lies
    in memory where there is such a place, the journal on the disk."""
    from lessor_fixtures import LESSORD, SIMGPU, Place

    class Session(Place):
        def spawn_daemon(self, *options):
            with open(os.path.join(self.dir, "lessord.err"), "ab") as err:
                return subprocess.Popen([SIMGPU, "run", "--file", self.card, "--", LESSORD, *options], env=self.env,
                                        stdin=subprocess.DEVNULL, stdout=err, stderr=err)

    p = Session(*card)
    try:
        with tempfile.TemporaryDirectory(prefix="lessor-b-", dir="/dev/shm" if os.path.isdir("/dev/shm") else p.dir) as runtime:
            p.env.update(XDG_RUNTIME_DIR=runtime, XDG_STATE_HOME=os.path.join(p.dir, "state"), XDG_CONFIG_HOME=p.dir)
            p.home = os.path.join(p.dir, "lessor")
            p.socket = os.path.join(runtime, "lessor", "lessor.sock")
            if conf:
                p.conf(conf)
            try:
                p.start()
                yield p
            finally:
                p.close()
    finally:
        p.close()


def add_holders(p, n, have=0, size="1M"):
    """@n programs with memory on the card, each under a lease of its own, seen there by the daemon."""
    from lessor_fixtures import until
    for _ in range(n):
        hog = p.hog(size)
        answer = p.ask("8M", mode="now", bind={"to": "process", "pid": hog.pid})
        if answer.status != 201:
            raise SystemExit(f"bench: no lease for a holder: {answer!r}")

    def all_seen():
        holders = p.device()["holders"]
        return sum(h["kind"] == "lease" and h["used_bytes"] > 0 for h in holders) == have + n
    until(f"{have + n} holders are seen on the card", all_seen)


def settle(seconds=1.0):
    """Lets what a start left behind (looks, timers) pass before anything is measured."""
    time.sleep(seconds)
