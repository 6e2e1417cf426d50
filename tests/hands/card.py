# SPDX-License-Identifier: Apache-2.0
"""A simulated card for the hands: programs that hold memory on it, faults, and what the card itself says was done to whom."""

import json
import os
import subprocess

from brain import BUILD, PATIENCE_S, state_of, until

SIMGPU = os.path.join(BUILD, "bin", "simgpu")
MIB = 1 << 20


class Card:
    def __init__(self, folder, *options):
        self.file = os.path.join(folder, "card")
        made = json.loads(self.simgpu("create", "--memory", "256M", "--json", *options))
        self.uuids = made["uuids"]
        self.env = {**os.environ, "SIMGPU": self.file,
                    "LD_LIBRARY_PATH": ":".join(filter(None, [self.file + ".lib" if os.path.isdir(self.file + ".lib") else "",
                                                              os.path.join(BUILD, "simgpu")]))}  # fmt: skip
        self.hogs = []

    def simgpu(self, verb, *args):
        return subprocess.run([SIMGPU, verb, "--file", self.file, *args], check=True, capture_output=True, text=True).stdout

    def uuid(self, device=0):
        return bytes.fromhex(self.uuids[device][4:].replace("-", ""))

    def fault(self, kind, *args):
        self.simgpu("fault", kind, *args)

    def clear(self):
        self.simgpu("fault", "clear")

    def hog(self, size="16M", *options, **popen):
        """A program that holds that much; its first line says that it does."""
        child = subprocess.Popen([SIMGPU, "hog", "--file", self.file, "--alloc", size, *options], env=self.env, text=True,
                                 stdout=subprocess.PIPE, **popen)  # fmt: skip
        assert child.stdout.readline()
        self.hogs.append(child)
        return child

    def device(self, device=0):
        return json.loads(self.simgpu("show", "--json"))["devices"][device]

    def faults(self, kind):
        return [f for f in json.loads(self.simgpu("show", "--json"))["faults"] if f["kind"] == kind]

    def used(self, device=0):
        return self.device(device)["used_bytes"]

    def calls(self, pid):
        """What was done to it, in order: "lock", "checkpoint", "restore", "unlock", each as (name, code)."""
        lines = [json.loads(line) for line in self.simgpu("trace", "--json").splitlines()]
        return [(e["kind"][:-4], e["rc"]) for e in lines if e["pid"] == pid and e["kind"].endswith("-end")]

    def end(self):
        self.clear()  # lets go whoever hangs in a call
        for hog in self.hogs:
            hog.kill()
            hog.wait(PATIENCE_S)
            hog.stdout.close()
        self.simgpu("destroy")


def counts_on(hog):
    """A program with --count goes on from where it was."""
    first = int(hog.stdout.readline().split()[-1])
    return int(hog.stdout.readline().split()[-1]) == first + 1


def is_stopped(pid):
    return state_of(pid) == "T"


def records(folder):
    """{pid: {key: value}} of what lies in the folder of records, as a reader without any of our code sees it."""
    found = {}
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
        if not name[0].isdigit() or name.endswith(".aside"):
            continue
        try:
            with open(os.path.join(folder, name)) as f:
                found[int(name.split("-")[0])] = dict(line.rstrip("\n").split("=", 1) for line in f)
        except FileNotFoundError:
            pass
    return found


def step_reached(folder, pid, step):
    until(f"process {pid} is {step}", lambda: records(folder).get(pid, {}).get("step") == step)
