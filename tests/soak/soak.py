#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A daemon under clients that know nothing of each other, and under everything that happens to a daemon in a year: kills,
restarts, reloads (also of files that are wrong), eyes and hands that die, a driver that hangs, a journal that others lock.

    soak.py [--minutes 10] [--seed N] [--clients 8]

From time to time everything comes to rest: clients pause and give back what they have. Then the books must be exact (no
lease, no entry, all of the card free, and the card itself agrees), and what the daemon has of descriptors, threads, memory
and disk is written down. In the second half the daemon is not restarted any more: there it must stay flat.

TAP on standard output, and the sum as its last line.
"""

import argparse
import contextlib
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from lessor_fixtures import GIB, LESSORD, MIB, SIMGPU, Place, until  # noqa: E402

LESSOR = os.path.join(os.path.dirname(LESSORD), "lessor")
EXPECTED_AWAY = (ConnectionError, FileNotFoundError, TimeoutError)
REST_EVERY_S = 15
RSS_SLACK = 2 * MIB
SEGMENTS_KEPT, SEGMENT_RECORDS = 8, 10000  # store/journal.h; a segment ends with the turn that fills it
FILE_SLACK = 1.25  # of the bytes for each record kept


class Stopped(Exception):
    pass


class Clients:
    """So many threads; while resting() they hold still and have nothing."""

    def __init__(self, place, n, seed):
        self.place, self.stop = place, threading.Event()
        self.gate = threading.Condition()
        self.pausing, self.n_paused, self.n_ops = False, 0, 0
        self.wrong = []
        self.threads = [threading.Thread(target=self.work, args=(random.Random(seed * 1000 + i),), daemon=True)
                        for i in range(n)]
        for t in self.threads:
            t.start()

    def work(self, rnd):
        mine = []
        while not self.stop.is_set():
            self.pause_if_asked(mine)
            try:
                self.one(rnd, mine)
            except EXPECTED_AWAY:
                time.sleep(0.02)  # the daemon is being restarted
            except json.JSONDecodeError:
                pass  # an answer that was cut off by a kill
            except Exception as e:  # noqa: BLE001 - told at the end
                if not isinstance(e, OSError) and "HTTP" not in type(e).__name__ and "Disconnected" not in type(e).__name__ \
                        and "IncompleteRead" not in type(e).__name__ and "BadStatusLine" not in type(e).__name__:
                    self.wrong.append(repr(e))
            self.n_ops += 1
        self.drop(mine)

    def pause_if_asked(self, mine):
        with self.gate:
            if not self.pausing:
                return
            self.drop(mine)
            self.n_paused += 1
            self.gate.notify_all()
            while self.pausing and not self.stop.is_set():
                self.gate.wait(1)
            self.n_paused -= 1

    def drop(self, mine):
        for what in mine:
            if isinstance(what, subprocess.Popen):
                what.kill()
                what.wait()
            else:
                with contextlib.suppress(Exception):
                    self.place.release(what)
        mine.clear()

    @contextlib.contextmanager
    def resting(self):
        with self.gate:
            self.pausing = True
            if not self.gate.wait_for(lambda: self.n_paused == len(self.threads), timeout=180):
                raise AssertionError("a client does not come to rest")
        try:
            yield
        finally:
            with self.gate:
                self.pausing = False
                self.gate.notify_all()

    # ---- what they do ----

    def one(self, rnd, mine):
        p = self.place
        what = rnd.choices(("ask", "release", "renew", "look", "change", "plan", "nonsense", "leave", "run", "kill", "keyed",
                            "listen"), (14, 10, 6, 10, 6, 4, 4, 3, 2, 3, 4, 2))[0]
        leases = [x for x in mine if isinstance(x, str)]
        if what in ("ask", "keyed"):
            headers = {"Idempotency-Key": f"{rnd.random()}"} if what == "keyed" else {}
            body = {"bytes": rnd.choice(("64M", "256M", "1G", "2500M", "5%", "all")), "priority": rnd.randint(2, 5),
                    "mode": rnd.choice(("now", "queue", "queue")), "bind": {"to": "heartbeat", "ttl_ms": 60000},
                    **({"for": "1h"} if rnd.random() < 0.5 else {})}
            if rnd.random() < 0.05:
                body.update(exclusive=True, bytes="all")
            for _ in range(2 if what == "keyed" else 1):
                a = p.request("POST", "/api/leases", body, headers)
                assert a.status in (201, 202, 409, 422, 429, 503, 507), a
                if a.status in (201, 202) and a.json["id"] not in mine:
                    mine.append(a.json["id"])
            if len(leases) > 12:
                self.drop(mine)
        elif what == "release" and leases:
            lease = rnd.choice(leases)
            assert p.release(lease).status in (200, 404, 409, 410, 429, 503, 507)
            mine.remove(lease)
        elif what == "renew" and leases:
            lease = rnd.choice(leases)
            p.request("POST", f"/api/leases/{lease}/{rnd.choice(('renew', 'activate'))}")
        elif what == "change" and leases:
            a = p.request("PATCH", f"/api/leases/{rnd.choice(leases)}",
                          rnd.choice(({"priority": 3}, {"extend": "1m"}, {"pin": "10m"}, {"pin": False}, {"for": "5m"})))
            assert a.status in (200, 403, 404, 409, 410, 429, 503, 507), a
        elif what == "plan":
            assert p.request("POST", "/api/plan", {"bytes": "1G"}).status in (200, 429, 503)
        elif what == "look":
            assert p.get(rnd.choice(("/api/status", "/healthz", "/api/queue", "/api/events?limit=50", "/api/devices",
                                     "/api/limits", "/api/config"))).status in (200, 429, 503)
        elif what == "nonsense":
            body = rnd.choice((b"[" * 70, b"{", b'{"bytes":1e3}', b'{"bytes":"1G","a":1}', b"\xff\xfe", b""))
            assert p.request("POST", "/api/leases", body).status in (400, 411, 413, 415, 429, 503)
        elif what == "leave":
            c = p.connection()
            c.request("POST", "/api/leases", json.dumps({"bytes": "all", "mode": "wait", "bind": {"to": "connection"}}),
                      {"Content-Type": "application/json"})
            time.sleep(rnd.random() * 0.05)
            c.close()
        elif what == "listen":
            c = p.connection()
            c.request("GET", "/api/events", headers={"Accept": "text/event-stream"})
            c.getresponse().read(64)
            c.close()
        elif what == "run" and sum(isinstance(x, subprocess.Popen) for x in mine) < 2:
            mine.append(subprocess.Popen([LESSOR, "run", "-q", "--vram", "128M", "--wait", "20s", "--", SIMGPU, "hog", "--alloc",
                                          "128M"], env={**p.env, "LESSOR_SOCKET": p.socket}, stdin=subprocess.DEVNULL,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        elif what == "kill":
            for program in [x for x in mine if isinstance(x, subprocess.Popen)]:
                program.send_signal(rnd.choice((signal.SIGKILL, signal.SIGTERM)))
                program.wait()
                mine.remove(program)


class Fate:
    """What happens to a daemon, one thing after the other."""

    def __init__(self, place, seed):
        self.place, self.rnd = place, random.Random(seed)
        self.seen = {}

    def strike(self, restarts):
        what = self.rnd.choice(("reload", "broken reload", "eyes", "warden", "hang", "lock")
                               + (("kill", "kill", "stop") if restarts else ()))
        self.seen[what] = self.seen.get(what, 0) + 1
        getattr(self, what.replace(" ", "_"))()

    def reload(self):
        self.place.conf(f"keep_events = 3000\nwaiting_per_user_max = {self.rnd.randint(20, 200)}\n")
        self.place.daemon.send_signal(signal.SIGHUP)

    def broken_reload(self):
        self.place.conf(f"keep_events = 3000\nnonsense = {self.rnd.random()}\n")
        self.place.daemon.send_signal(signal.SIGHUP)

    def children(self, name):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                    head, tail = file.read().rsplit(")", 1)
                if head.endswith(f"({name}") and int(tail.split()[1]) == self.place.daemon.pid:
                    yield int(pid)

    def eyes(self):
        for pid in self.children("lessor-eyes"):
            os.kill(pid, signal.SIGKILL)

    def warden(self):
        for pid in self.children("lessor-warden"):
            os.kill(pid, signal.SIGKILL)

    def hang(self):
        self.place.fault("nvml-hang")
        time.sleep(0.5)
        self.place.fault("clear", "nvml-hang")

    def lock(self):
        with contextlib.suppress(sqlite3.OperationalError), \
                contextlib.closing(sqlite3.connect(os.path.join(self.place.home, "journal.db"), timeout=1)) as db:
            db.execute("BEGIN IMMEDIATE")
            time.sleep(0.3)
            db.rollback()

    def kill(self):
        self.place.kill()
        self.again()

    def stop(self):
        assert self.place.stop() == 0, "lessord did not end well: " + self.place.log()[-2000:]
        self.again()

    def again(self):
        self.place.conf("keep_events = 3000\n")
        self.place.start()


def measure(place):
    """What the daemon has, while nobody wants anything of it."""
    pid = place.daemon.pid
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        status = dict(line.split(":", 1) for line in file if ":" in line)
    size = sum(os.stat(os.path.join(place.home, name)).st_size for name in os.listdir(place.home)
               if name.startswith("journal.db") and "aside" not in name)
    kept = subprocess.run([LESSORD, "--dir", place.home, "--check-journal"], env=place.env, capture_output=True, text=True,
                          timeout=120, check=True).stdout
    segments, records = (int(n) for n in re.search(r": (\d+) segments, (\d+) records", kept).groups())
    return {"fds": len(os.listdir(f"/proc/{pid}/fd")), "threads": int(status["Threads"]),
            "rss_anon": int(status["RssAnon"].split()[0]) * 1024, "file_bytes": size, "segments": segments, "records": records}


def end_orphans(place):
    """Commands whose `lessor run` was killed live on, as they should; somebody ends them."""
    for process in [p for device in card(place)["devices"] for p in device["processes"]]:
        with contextlib.suppress(OSError):
            os.kill(process["pid"], signal.SIGKILL)


def card(place):
    return json.loads(subprocess.run([SIMGPU, "show", "--json"], env=place.env, stdout=subprocess.PIPE, check=True).stdout)


def books_are_exact(place):
    """Nobody has anything: so says the daemon, and so says the card."""
    def empty():
        end_orphans(place)
        with contextlib.suppress(*EXPECTED_AWAY):
            for lease in place.leases():
                place.release(lease["id"])
            status = place.get("/api/status").json
            return not status["leases"] and not status["queue"] and not status["strangers"] and \
                all(d["free_bytes"] == d["total_bytes"] == 3 * GIB for d in status["devices"]) and len(status["devices"]) == 2
        return False
    until("the books are empty", empty, 120)
    assert all(not d["processes"] for d in card(place)["devices"]), card(place)


def soak(place, minutes, seed, n_clients):
    clients, fate = Clients(place, n_clients, seed), Fate(place, seed)
    begin, rests = time.monotonic(), []
    end = begin + minutes * 60
    while time.monotonic() < end:
        restarts = time.monotonic() < begin + (end - begin) / 2
        rest = min(time.monotonic() + REST_EVERY_S, end)
        while time.monotonic() < rest:
            time.sleep(min(1.5, max(0.0, rest - time.monotonic())))
            fate.strike(restarts)
        with clients.resting():
            books_are_exact(place)
            if not restarts:
                until("every connection is gone", lambda: settled(place))
                rests.append(measure(place))
    with clients.resting():
        clients.stop.set()
        books_are_exact(place)
    for t in clients.threads:
        t.join(60)
    return clients, fate, rests


def settled(place):
    """Two looks alike: nothing is being closed any more."""
    def fds():
        return len(os.listdir(f"/proc/{place.daemon.pid}/fd"))
    first = fds()
    time.sleep(0.2)
    return fds() == first


def judge(rests):
    """[(name, holds, words)]: the last rests against the first ones."""
    if len(rests) < 4:
        return [("there were rests enough to compare", False, f"{len(rests)}")]
    third = max(1, len(rests) // 3)
    first, last = rests[:third], rests[-third:]

    def most(rows, key):
        return max(r[key] for r in rows)
    def per_record(rows):
        return max(r["file_bytes"] / r["records"] for r in rows)
    rows = [("descriptors stay as many", most(last, "fds") <= most(first, "fds") + 2),
            ("threads stay as many", most(last, "threads") <= most(first, "threads")),
            ("memory stays flat", most(last, "rss_anon") <= most(first, "rss_anon") + RSS_SLACK),
            # a journal fills its segments first; what must not grow is what is kept, and the room that each record takes
            ("no more is kept than there are segments for", most(rests, "segments") <= SEGMENTS_KEPT + 1 and
             most(rests, "records") <= (SEGMENTS_KEPT + 1) * SEGMENT_RECORDS),
            ("files stay flat for what they keep", per_record(last) <= per_record(first) * FILE_SLACK)]
    return [(name, holds, f"{first[0]} ... {last[-1]}") for name, holds in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--minutes", type=float, default=float(os.environ.get("LESSOR_SOAK_MINUTES") or 10))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("LESSOR_SOAK_SEED") or random.randrange(1 << 30)))
    parser.add_argument("--clients", type=int, default=8)
    options = parser.parse_args()
    place = Place("--gpus", "2", "--memory", "3G")
    results = []
    try:
        place.conf("keep_events = 3000\n")
        place.start()
        clients, fate, rests = soak(place, options.minutes, options.seed, options.clients)
        results.append(("books are exact at every rest and at the end", True, f"{len(rests)} rests"))
        results.append(("no client was answered what nobody should be", not clients.wrong, "; ".join(clients.wrong[:3])))
        results += judge(rests)
        results.append(("the daemon ends well", place.stop() == 0, ""))
        checked = subprocess.run([LESSORD, "--dir", place.home, "--check-journal"], env=place.env, capture_output=True,
                                 text=True, timeout=120, check=False)
        results.append(("the journal is whole", checked.returncode == 0, checked.stdout + checked.stderr))
        aside = [name for name in os.listdir(place.home) if ".aside-" in name]
        results.append(("no journal was moved aside", not aside, str(aside)))
        print(f"# seed {options.seed}: {clients.n_ops} requests; {fate.seen}", flush=True)
    except BaseException as e:  # noqa: BLE001 - a failure with its words
        results.append(("it went to the end", False, f"{e!r}"))
        print("# " + place.log()[-3000:].replace("\n", "\n# "))
    finally:
        place.close()
    print(f"1..{len(results)}")
    for i, (name, holds, words) in enumerate(results, 1):
        print(f"{'ok' if holds else 'not ok'} {i} - {name}")
        if words:
            print("# " + words.strip().replace("\n", "\n# "))
    print(f"# seed {options.seed}")
    for name, holds, _ in results:
        if not holds:
            print(f"failed: {name} (seed {options.seed})")
    print(f"{sum(holds for _, holds, _ in results)} passed, {sum(not holds for _, holds, _ in results)} failed, 0 skipped")
    return 0 if all(holds for _, holds, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
