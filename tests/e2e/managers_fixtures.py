# SPDX-License-Identifier: Apache-2.0
"""A lessord whose service manager, logind and container engine are scripted ones, and work that they run on a small card."""

import os
import signal

import pytest

from lessor_fixtures import MIB, SIMGPU, Place, until
from scripted_bus import Bus, Logind, Systemd, close_connection, removed

CONF = "back_off = 1s\npoll_busy = 20ms\npoll = 100ms\n"


def cgroup_mount():
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        mount = next((line.split()[4] for line in file if " - cgroup2 " in line), None)
    if not mount or not os.access(mount, os.W_OK):
        pytest.skip("no cgroup2 hierarchy to make a unit's or a container's folder in")
    return mount


class Folders:
    """Cgroups above those of the tests' own, which are removed again."""

    def __init__(self):
        self.made = []

    def below(self, path):
        """The folder of a slice of this test's own there: what is above it is not empty then, and stays for everybody."""
        return until(f"a folder below {path}", lambda: self.try_below(path))

    def try_below(self, path):
        folder = cgroup_mount()
        own = [] if path.endswith(".service") else [f"lessor-test-{os.getpid()}.slice"]
        for part in path.strip("/").split("/") + own:
            folder = os.path.join(folder, part)
            try:
                os.mkdir(folder)
            except FileExistsError:
                continue
            except FileNotFoundError:
                return None  # another test removed what is above it just now
            except OSError as e:
                pytest.skip(f"no cgroup can be made here: {e}")
            self.made.append(folder)
        return folder

    def remove(self):
        for folder in reversed(self.made):
            removed(folder)  # unless another test is below it


class Managed:
    """lessord, a bus with a systemd and a logind on it, a card of 512 MiB."""
    def __init__(self, place=None):
        self.place = place or Place("--gpus", "1", "--memory", "512M")
        self.folders = Folders()
        self.connections, self.units = [], []
        self.bus = Bus(self.place.dir)
        self.place.env["DBUS_SESSION_BUS_ADDRESS"] = self.place.env["DBUS_SYSTEM_BUS_ADDRESS"] = self.bus.address
        try:
            self.comes_up()
        except BaseException:
            self.bus.stop()
            self.place.close()
            raise

    def comes_up(self):
        """Everything that is on the bus, which has none of it yet."""
        self.systemd, self.logind = Systemd(self.connection()), Logind(self.connection())

    def connection(self):
        self.connections.append(self.bus.connect())
        return self.connections[-1]

    def bus_comes_back(self):
        calls = self.systemd.calls
        self.logind.close()
        self.bus.start()
        self.comes_up()
        self.systemd.calls = calls
        for unit in self.units:
            unit.moves_to(self.systemd)

    def start(self, conf="", *options):
        self.place.conf(CONF + conf)
        self.place.start(*options)
        return self

    def close(self):
        try:
            for unit in self.units:
                unit.end(signal.SIGKILL)
            print(self.place.log())  # shown where the test fails
            return self.place.close()
        finally:
            for connection in self.connections:
                close_connection(connection)
            self.logind.close()
            self.bus.stop()
            self.folders.remove()

    # ---- units ----

    def unit(self, name="train.service", below=None, size="200M", argv=None):
        """One that runs, with so much of the card, or another program."""
        name = f"lessor-test-{os.getpid()}-{name}"
        above = below or f"user.slice/user-{os.geteuid()}.slice/user@{os.geteuid()}.service/app.slice"
        unit = self.systemd.add(name, os.path.join(self.folders.below(above), name),
                                argv or [SIMGPU, "run", "--", SIMGPU, "hog", "--alloc", size], self.place.env)
        self.units.append(unit)
        unit.run()
        return unit

    def adopt(self, pid, **fields):
        body = {"pid": pid, "cgroup": True, "bytes": "220M", "priority": 4, "yield_by": ["restart"]} | fields
        return self.place.request("POST", "/api/adopt", body)

    def is_seen(self, pid):
        return any(s["pid"] == pid and (s["used_bytes"] or 0) >= 200 * MIB
                   for s in self.place.get("/api/status").json["strangers"])

    def adopted(self, pid, **fields):
        until("it is a stranger in the books", lambda: self.is_seen(pid))

        def taken():  # more than it uses is given by a young look at the card only, and an adoption never waits
            answer = self.adopt(pid, **fields)
            assert answer.status == 201 or answer.problem == "would-wait", answer
            return answer.status == 201 and answer.json["id"]
        lease_id = until("it is adopted", taken)
        until("the card shows it", lambda: (self.lease(lease_id)["used_bytes"] or 0) >= 200 * MIB)
        return lease_id

    # ---- what became of it ----

    def lease(self, lease_id):
        answer = self.place.lease(lease_id)
        return answer.json if answer.status == 200 else {"state": "ended"}

    def wait_state(self, lease_id, state):
        return until(f"{lease_id} is {state}", lambda: (v := self.lease(lease_id))["state"] == state and v)

    def demand(self):
        """Somebody more important wants what only the other can give; the grant is not collected."""
        answer = self.place.ask("400M", mode="queue", priority=2)
        assert answer.status in (201, 202), answer
        return answer.json["id"]

    def used(self):
        return self.place.device()["used_bytes"]

    def why_not(self, lease_id):
        return [b.get("why_not") for b in self.lease(lease_id)["reason"]["blockers"]]

    def rules(self, lease_id):
        return [e["rule"] for e in self.place.events() if e["lease"] == lease_id]

    def logged(self, text):
        return until(f"the log says {text}", lambda: text in self.place.log())

    def is_back(self, lease_id, unit):
        lease = self.wait_state(lease_id, "active")
        assert lease["binding"]["pid"] == unit.process.pid, lease
        until("its memory counts under it", lambda: (self.lease(lease_id)["used_bytes"] or 0) >= 200 * MIB)
        return lease


@pytest.fixture
def managed():
    m = Managed()
    yield m
    assert m.close() in (0, None, -9)
