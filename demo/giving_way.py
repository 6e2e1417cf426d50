# SPDX-License-Identifier: Apache-2.0
"""The acts in which memory is taken back: a filler that gives way and counts on, and three that do not do as they should."""

import http.server
import os
import signal
import subprocess
import threading

STEPS = {
    "parked": "dreamer is parked, writer has its memory",
    "thawed": "writer ended, dreamer is back and counts on",
    "liar": "a program said that it gave its memory back, and had not: its next way out was taken",
    "stubborn": "a command that ignores SIGTERM was ended all the same, and waits to be started again",
    "died": "a program died while it was being parked: its lease ended, once",
}

# Short, so that nobody waits for half a minute to see what patience is for.
CONF = "ask = 2s\nyield_grace = 3s\nback_off = 2s\n"


def counts(d, name):
    """What a program with a counter in device memory has printed so far."""
    with open(os.path.join(d.dir, "log", name + ".out"), encoding="utf-8") as file:
        lines = file.read().rpartition("\n")[0].splitlines()
    return [int(line.split()[1]) for line in lines if line.startswith("count ")]


def must_count_without_a_gap(d, name):
    seen = counts(d, name)
    d.must(seen == list(range(1, len(seen) + 1)), f"{name} counts 1, 2, 3 … without a gap or a second beginning")
    return seen[-1]


def ledger(d):
    return d.status()["ledger"]["charged_bytes"]


def in_state(d, name, state):
    return d.until(f"{name} is {state}", lambda: (lambda l: l if l and l["state"] == state else None)(d.lease(name)))


def ends(d, name):
    """Its program is told to end, and is gone with its lease."""
    os.kill(d.pid_of(d.lease(name)), signal.SIGTERM)
    d.ended(name)


def act_parked(d):
    d.title("A filler counts in device memory; writer needs the card now: the filler is parked, and nothing of it is lost")
    d.run("dreamer", "2500M", "--priority", "5", "--yield-by", "checkpoint", hog=["--count"])
    d.runs("dreamer", 2500 * d.MIB)
    d.until("dreamer counts", lambda: len(counts(d, "dreamer")) >= 5)
    d.show_lease("dreamer")
    code, said = d.cli("plan", "--vram", "1500M", "--priority", "2")
    d.must(code in (0, 124) and "L" in said, "the plan says whose memory would be taken back")
    d.run("writer", "1500M", "--priority", "2")
    d.runs("writer", 1500 * d.MIB)
    lease = in_state(d, "dreamer", "parked")
    stood = counts(d, "dreamer")[-1]
    d.show_lease("writer")
    d.say(f"dreamer  {lease['id']:4} parked: counted to {stood}, {d.size(ledger(d))} of host memory are charged for it")
    d.must(2500 * d.MIB <= ledger(d) < 2700 * d.MIB, "the ledger has what the host really grew by")
    d.must(all(pid != d.pid_of(lease) for pid in d.card_bytes()), "the card lists nothing of dreamer")
    d.show_device()
    d.cli("status")
    d.step("parked")


def act_thawed(d):
    d.title("writer ends: dreamer comes back by itself and counts on where it stood")
    stood = counts(d, "dreamer")[-1]
    ends(d, "writer")
    d.runs("dreamer", 2500 * d.MIB)
    d.until("dreamer counts on", lambda: counts(d, "dreamer")[-1] > stood)
    now = must_count_without_a_gap(d, "dreamer")
    d.must(ledger(d) == 0, "nothing is charged any more")
    d.say(f"stood at {stood}, is at {now} by now, without a gap")
    for line in d.said("dreamer"):
        d.say(f"dreamer: {line}")
    d.cli("costs")
    d.step("thawed")
    ends(d, "dreamer")


class Liar(http.server.BaseHTTPRequestHandler):
    """Says yes to everything, and does nothing."""

    def do_POST(self):  # pylint: disable=invalid-name
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


def act_liar(d):
    d.title("One that lies: it says that it gave its memory back. lessor believes the card, and takes its next way out")
    with http.server.HTTPServer(("127.0.0.1", 0), Liar) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        hook = f"http://127.0.0.1:{server.server_address[1]}/yield"
        d.run("liar", "2500M", "--priority", "4", "--yield-by", "cooperate,checkpoint", "--yield-hook", hook, hog=["--count"])
        d.runs("liar", 2500 * d.MIB)
        d.until("liar counts", lambda: len(counts(d, "liar")) >= 3)
        d.run("writer", "1500M", "--priority", "2")
        d.runs("writer", 1500 * d.MIB)
        lease = in_state(d, "liar", "parked")
        d.must(lease["park"]["way"] == "checkpoint", "by the way out that needs nobody's word")
        strikes = {way["way"]: way["strikes"] for way in lease["ways"]}
        d.must(strikes["cooperate"] == 1 and strikes["checkpoint"] == 0, "one strike, for what it said and did not do")
        d.say(f"liar     {lease['id']:4} parked by {lease['park']['way']}; strikes for cooperate: {strikes['cooperate']}")
        d.step("liar")
        ends(d, "writer")
        d.runs("liar", 2500 * d.MIB)
        stood = counts(d, "liar")[-1]
        d.until("liar counts on", lambda: counts(d, "liar")[-1] > stood)
        must_count_without_a_gap(d, "liar")
        ends(d, "liar")
        server.shutdown()


def act_stubborn(d):
    d.title("One that ignores SIGTERM: its client ends it when the grace is over, and starts it again when there is room")
    d.run("stubborn", "2500M", "--priority", "5", "--yield-by", "restart", hog=["--ignore-term"])
    d.runs("stubborn", 2500 * d.MIB)
    first = d.pid_of(d.lease("stubborn"))
    d.run("writer", "1500M", "--priority", "2")
    d.runs("writer", 1500 * d.MIB)
    lease = in_state(d, "stubborn", "parked")
    d.must(first not in d.card_bytes(), "the first command is gone from the card")
    d.say(f"stubborn {lease['id']:4} parked by {lease['park']['way']}: nothing of it is on the card or in the ledger ({d.size(ledger(d))})")
    d.step("stubborn")
    ends(d, "writer")
    d.runs("stubborn", 2500 * d.MIB)
    again = d.pid_of(d.lease("stubborn"))
    d.must(again != first, "another process, the same command and lease")
    d.say(f"started again: pid {again} instead of {first}")
    os.kill(again, signal.SIGKILL)
    d.ended("stubborn")


def act_died(d):
    d.title("One that dies while it is being parked: its lease ends once, and writer has the memory")
    d.run("frail", "2500M", "--priority", "5", "--yield-by", "checkpoint")
    d.runs("frail", 2500 * d.MIB)
    lease = d.lease("frail")
    fault = [d.simgpu, "fault", "checkpoint-die", "--pid", str(d.pid_of(lease))]
    d.command(["simgpu", *fault[1:]])
    subprocess.run(fault, env=d.env, check=True, stdout=subprocess.DEVNULL)
    d.run("writer", "1500M", "--priority", "2")
    d.runs("writer", 1500 * d.MIB)
    code = d.ended("frail")
    d.must(code != 0, "lessor run tells that its command was killed")
    status, gone = d.api(f"/api/leases/{lease['id']}")
    d.must(status == 410, f"its lease is gone, not {status}")
    d.must(ledger(d) == 0, "and nothing is charged for it")
    d.say(f"frail    {lease['id']:4} {gone['detail']}")
    d.step("died")
    subprocess.run([d.simgpu, "fault", "clear"], env=d.env, check=True, stdout=subprocess.DEVNULL)
    ends(d, "writer")


ACTS = (act_parked, act_thawed, act_liar, act_stubborn, act_died)
