# SPDX-License-Identifier: Apache-2.0
"""A real dbus-daemon with a systemd and a logind on it that do what a test says: units are real processes in cgroups of their
own, jobs are removed by signals, locks are descriptors. What each was asked is in `calls`.

Behaviours are functions of (systemd, unit, reply, fail), called in the thread of the loop; a test gives a unit others than the
well-behaved ones.
"""

import contextlib
import os
import queue
import signal
import subprocess
import threading

import dbus
import dbus.lowlevel
import dbus.exceptions
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

from lessor_fixtures import PATIENCE_S, until

SYSTEMD, SYSTEMD_PATH = "org.freedesktop.systemd1", "/org/freedesktop/systemd1"
LOGIND, LOGIND_PATH = "org.freedesktop.login1", "/org/freedesktop/login1"
MANAGER = SYSTEMD + ".Manager"
PROPERTIES = "org.freedesktop.DBus.Properties"
ERRORS = "org.freedesktop.DBus.Error."

CONF = """<busconfig>
  <type>session</type>
  <listen>unix:path={path}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
  </policy>
</busconfig>
"""


class Loop:
    """One loop for all services of this process."""
    one = None

    def __init__(self):
        dbus.mainloop.glib.threads_init()
        self.glue = dbus.mainloop.glib.DBusGMainLoop()
        threading.Thread(target=GLib.MainLoop().run, daemon=True).start()

    @classmethod
    def get(cls):
        cls.one = cls.one or cls()
        return cls.one

    def do(self, work):
        """work() in the thread of the loop; what it returns or raises."""
        done = queue.Queue()

        def inside():
            try:
                done.put((work(), None))
            except Exception as e:  # noqa: BLE001 - raised where it was asked for
                done.put((None, e))
            return False
        GLib.idle_add(inside)
        value, error = done.get(timeout=PATIENCE_S)
        if error:
            raise error
        return value


class Bus:
    """A dbus-daemon that is always at the same address, also when it is started again."""

    def __init__(self, folder, name="bus"):
        self.path = os.path.join(folder, name)
        self.conf = self.path + ".conf"
        self.address = "unix:path=" + self.path
        self.daemon = None
        with open(self.conf, "w", encoding="utf-8") as file:
            file.write(CONF.format(path=self.path))
        self.start()

    def start(self):
        self.daemon = subprocess.Popen(["dbus-daemon", f"--config-file={self.conf}", "--nofork", "--nopidfile", "--nosyslog",
                                        "--print-address=1"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert self.daemon.stdout.readline().startswith(b"unix:"), "no bus"

    def stop(self):
        if self.daemon.poll() is None:
            self.daemon.terminate()
        self.daemon.wait(PATIENCE_S)
        self.daemon.stdout.close()

    def connect(self):
        def inside():
            connection = dbus.bus.BusConnection(self.address, mainloop=Loop.get().glue)
            connection.set_exit_on_disconnect(False)
            return connection
        return Loop.get().do(inside)


def lies(connection, path, interface, member, signature, *args):
    """A signal of somebody who is not whom the name of its interface belongs to; returns when the bus is through with it."""
    message = dbus.lowlevel.SignalMessage(path, interface, member)
    message.append(*args, signature=signature)

    def inside():
        connection.send_message(message)
        connection.get_name_owner("org.freedesktop.DBus")  # answered after it
    Loop.get().do(inside)


def error(name, words="no"):
    return dbus.exceptions.DBusException(words, name=name if "." in name else ERRORS + name)


# ---- units ----

class Unit(dbus.service.Object):
    SUPPORTS_MULTIPLE_CONNECTIONS = True  # one after the other

    def __init__(self, systemd, name, folder, argv, env):
        self.systemd, self.name, self.folder, self.argv, self.env = systemd, name, folder, argv, env
        self.state, self.load, self.process = "inactive", "loaded", None
        self.can_start = self.can_stop = True
        self.transient = False
        self.on_stop, self.on_start = stops, starts
        self.says_pid = None  # another main process than it has
        self.path = f"{SYSTEMD_PATH}/unit/" + "".join(c if c.isalnum() else f"_{ord(c):02x}" for c in name)
        super().__init__(systemd.connection, self.path)

    def moves_to(self, systemd):
        """The bus was started anew."""
        Loop.get().do(lambda: self.add_to_connection(systemd.connection, self.path))
        self.systemd = systemd
        systemd.units[self.name] = self

    def beside(self, argv):
        """Another process in its cgroup."""
        script = 'echo $$ > "$1/cgroup.procs" && shift && exec "$@"'
        process = subprocess.Popen(["sh", "-c", script, "sh", self.folder, *argv], env=self.env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL)
        until("it is in its cgroup", lambda: str(process.pid) in procs(self.folder))
        return process

    def run(self):
        os.mkdir(self.folder)  # a new one for each start, as systemd makes it
        self.process = self.beside(self.argv)
        self.state = "active"

    def end(self, how=signal.SIGTERM):
        if self.process:
            self.process.send_signal(how)
            self.process.wait(PATIENCE_S)
            self.process = None
        self.state = "inactive"
        if os.path.isdir(self.folder):
            until("its cgroup is empty", lambda: removed(self.folder))

    @dbus.service.method(PROPERTIES, in_signature="s", out_signature="a{sv}")
    def GetAll(self, interface):  # noqa: N802 - the method's name
        self.systemd.calls.append(("GetAll", self.name, str(interface).rpartition(".")[2]))
        if interface == SYSTEMD + ".Service":
            pid = self.says_pid or (self.process.pid if self.process else 0)
            return {"MainPID": dbus.UInt32(pid), "Type": "simple"}
        return {"Id": self.name, "LoadState": self.load, "ActiveState": self.state, "CanStart": dbus.Boolean(self.can_start),
                "CanStop": dbus.Boolean(self.can_stop), "Transient": dbus.Boolean(self.transient),
                "Names": dbus.Array([self.name], signature="s"), "Job": dbus.Struct((dbus.UInt32(0), dbus.ObjectPath("/")))}


def procs(folder):
    try:
        with open(os.path.join(folder, "cgroup.procs"), encoding="ascii") as file:
            return file.read().split()
    except FileNotFoundError:
        return []


def uid_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(next(line for line in file if line.startswith("Uid:")).split()[1])


def removed(folder):
    try:
        os.rmdir(folder)
    except OSError:
        return False
    return True


class Systemd(dbus.service.Object):
    def __init__(self, connection):
        self.calls, self.units, self.n_jobs = [], {}, 0
        super().__init__(connection, SYSTEMD_PATH)
        self.owned = dbus.service.BusName(SYSTEMD, bus=connection)  # last: who sees the name may call

    def add(self, name, folder, argv, env):
        def inside():
            unit = self.units[name] = Unit(self, name, folder, argv, env)
            return unit
        return Loop.get().do(inside)

    def asked(self, method):
        return [call for call in self.calls if call[0] == method]

    def job(self):
        self.n_jobs += 1
        return f"{SYSTEMD_PATH}/job/{self.n_jobs}"

    def job_is_over(self, job, unit, result):
        with contextlib.suppress(dbus.exceptions.DBusException):  # the bus is away: nobody hears it
            self.JobRemoved(dbus.UInt32(int(job.rpartition("/")[2])), dbus.ObjectPath(job), unit.name, result)

    def moved_by_somebody(self, unit, work):
        """A job that lessord did not ask for."""
        def inside():
            job = self.job()
            work()
            self.job_is_over(job, unit, "done")
        Loop.get().do(inside)

    @dbus.service.method(MANAGER)
    def Subscribe(self):  # noqa: N802
        self.calls.append(("Subscribe",))

    @dbus.service.method(MANAGER, in_signature="s", out_signature="o")
    def LoadUnit(self, name):  # noqa: N802
        self.calls.append(("LoadUnit", str(name)))
        if name not in self.units:
            raise error(SYSTEMD + ".NoSuchUnit")
        return dbus.ObjectPath(self.units[name].path)

    @dbus.service.method(MANAGER, in_signature="ss", out_signature="o", async_callbacks=("reply", "fail"))
    def StopUnit(self, name, mode, reply, fail):  # noqa: N802
        self.calls.append(("StopUnit", str(name), str(mode)))
        self.units[name].on_stop(self, self.units[name], reply, fail)

    @dbus.service.method(MANAGER, in_signature="ss", out_signature="o", async_callbacks=("reply", "fail"))
    def StartUnit(self, name, mode, reply, fail):  # noqa: N802
        self.calls.append(("StartUnit", str(name), str(mode)))
        self.units[name].on_start(self, self.units[name], reply, fail)

    @dbus.service.signal(MANAGER, signature="uoss")
    def JobRemoved(self, number, job, unit, result):  # noqa: N802
        pass


def stops(systemd, unit, reply, fail):
    job = systemd.job()
    reply(dbus.ObjectPath(job))
    unit.end()
    systemd.job_is_over(job, unit, "done")


def starts(systemd, unit, reply, fail):
    job = systemd.job()
    reply(dbus.ObjectPath(job))
    if not unit.process:
        unit.run()
    systemd.job_is_over(job, unit, "done")


def job_is_over_before_it_has_a_name(systemd, unit, reply, fail):
    job = systemd.job()
    unit.end()
    systemd.job_is_over(job, unit, "done")
    reply(dbus.ObjectPath(job))


def never_answers(systemd, unit, reply, fail):
    pass


def refuses(systemd, unit, reply, fail):
    fail(error("InteractiveAuthorizationRequired", "Interactive authentication required."))


def cannot(systemd, unit, reply, fail):
    fail(error(SYSTEMD + ".LoadFailed", "It has no setting that this systemd knows."))


def stop_fails(systemd, unit, reply, fail):
    """It runs on: TimeoutStopSec passed, and SIGKILL did not help."""
    job = systemd.job()
    reply(dbus.ObjectPath(job))
    systemd.job_is_over(job, unit, "timeout")


def is_stopped_and_runs_again(systemd, unit, reply, fail):
    """Restart=always of somebody who killed it in the same moment, a socket, another unit that needs it."""
    job = systemd.job()
    reply(dbus.ObjectPath(job))
    unit.end()
    unit.run()
    systemd.job_is_over(job, unit, "canceled")


def says_done_and_leaves_it(systemd, unit, reply, fail):
    """KillMode=none, or a process that left for another cgroup."""
    job = systemd.job()
    reply(dbus.ObjectPath(job))
    unit.state = "inactive"
    systemd.job_is_over(job, unit, "done")


def start_fails(systemd, unit, reply, fail):
    job = systemd.job()
    reply(dbus.ObjectPath(job))
    unit.state = "failed"
    systemd.job_is_over(job, unit, "failed")


class Held:
    """Its job is made, and takes until it is let go."""

    def __init__(self, result="done"):
        self.result, self.systemd, self.unit, self.number, self.stop = result, None, None, None, None

    def __call__(self, systemd, unit, reply, fail):
        self.systemd, self.unit, self.stop = systemd, unit, unit.state == "active"
        unit.state = "deactivating" if self.stop else "activating"
        self.number = systemd.job()
        reply(dbus.ObjectPath(self.number))

    def has_begun(self):
        return self.number is not None

    def let_go(self):
        def inside():
            if self.stop:
                self.unit.end()
            else:
                self.unit.run()
            self.systemd.job_is_over(self.number, self.unit, self.result)
        Loop.get().do(inside)


# ---- logind ----

class Logind(dbus.service.Object):
    def __init__(self, connection):
        self.calls, self.locks, self.refuses = [], [], None
        super().__init__(connection, LOGIND_PATH)
        self.owned = dbus.service.BusName(LOGIND, bus=connection)  # last: who sees the name may call

    @dbus.service.method(LOGIND + ".Manager", in_signature="ssss", out_signature="h")
    def Inhibit(self, what, who, why, mode):  # noqa: N802
        self.calls.append(tuple(map(str, (what, who, why, mode))))
        if self.refuses:
            raise error(self.refuses, "Permission denied")
        ours, theirs = os.pipe()
        os.set_blocking(ours, False)
        self.locks.append(ours)
        fd = dbus.types.UnixFd(theirs)
        os.close(theirs)
        return fd

    def n_held(self):
        """Locks whose other end is open."""
        held = 0
        for fd in self.locks:
            try:
                os.read(fd, 1)
            except BlockingIOError:
                held += 1
        return held

    def tells(self, signal_name, begins):
        Loop.get().do(lambda: getattr(self, signal_name)(dbus.Boolean(begins)))

    def leaves(self):
        def inside():
            self.remove_from_connection()
            self.connection.release_name(LOGIND)
        Loop.get().do(inside)

    def close(self):
        for fd in self.locks:
            os.close(fd)

    @dbus.service.signal(LOGIND + ".Manager", signature="b")
    def PrepareForSleep(self, begins):  # noqa: N802
        pass

    @dbus.service.signal(LOGIND + ".Manager", signature="b")
    def PrepareForShutdown(self, begins):  # noqa: N802
        pass


def close_connection(connection):
    with contextlib.suppress(dbus.exceptions.DBusException):
        Loop.get().do(connection.close)
