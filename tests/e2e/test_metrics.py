# SPDX-License-Identifier: Apache-2.0
"""/metrics as Prometheus reads it, and the door that has nothing else."""

import http.client
import os
import re
import secrets

from lessor_fixtures import GIB, MIB, until

LINE = re.compile(r'^(lessor_[a-z_]+)(\{([a-z]+="(?:[^"\\\n]|\\.)*"(?:,[a-z]+="(?:[^"\\\n]|\\.)*")*)\})? ([0-9.]+)$')


def samples(text):
    """{name{labels}: value}; fails on any line that is not of the exposition format, and on a sample without its family."""
    found, families = {}, {}
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in families and kind in ("gauge", "counter", "histogram"), line
            families[name] = kind
        elif not line.startswith("# HELP "):
            parts = LINE.match(line)
            assert parts, line
            family = re.sub(r"_(bucket|sum|count)$", "", parts[1]) if parts[1] not in families else parts[1]
            assert family in families, line
            key = parts[1] + (parts[2] or "")
            assert key not in found, line
            found[key] = float(parts[4])
    return found


def scrape(place, **kw):
    a = place.get("/metrics", **kw)
    assert a.status == 200 and a.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8", a
    return samples(a.raw.decode())


def test_metrics_are_what_status_says(place):
    uuid = place.device()["uuid"]
    place.ask("1G", mode="now")
    waits = place.ask("2500M", mode="queue", priority=4)
    assert waits.status == 202
    seen = scrape(place)
    device = next(key for key in seen if key.startswith("lessor_device_free_bytes"))
    assert uuid in device and seen[device] == place.device()["free_bytes"] == 2 * GIB
    assert seen['lessor_leases{state="active"}'] == 1 and seen['lessor_leases{state="queued"}'] == 1
    assert seen['lessor_queue_entries{priority="batch"}'] == 1 and seen['lessor_gpu_state{state="ok"}'] == 1
    assert seen['lessor_decisions_total{kind="granted"}'] == 1 and seen["lessor_grant_wait_seconds_count"] == 1
    assert seen['lessor_grant_wait_seconds_bucket{le="+Inf"}'] == 1 and seen["lessor_degraded"] == 0
    place.release("L1")
    until("the other one is granted", lambda: scrape(place)["lessor_grant_wait_seconds_count"] == 2)


def test_metrics_tell_of_strangers_and_never_of_names(place):
    place.ask("64M", mode="now", name="the-secret-project", consumer="the-secret-script",
              bind={"to": "process", "pid": place.sleeper().pid})
    place.hog("256M")
    until("it is seen", place.strangers)
    text = place.get("/metrics").raw.decode()
    seen = samples(text)
    assert [v for k, v in seen.items() if k.startswith("lessor_device_stranger_bytes")] == [256 * MIB]
    assert "secret" not in text and "simgpu" not in text


def test_unknown_figure_is_left_out(place):
    place.fault("nvml-hang")
    until("the driver hangs", lambda: scrape(place)['lessor_gpu_state{state="stale"}'] == 1)
    place.fault("clear", "nvml-hang")


def test_S04_metrics_door_has_metrics_and_nothing_else(bare):
    path = os.path.join(bare.dir, "token")
    token = secrets.token_hex(32)
    with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
        file.write(token + "\n")
    bare.conf(f"metrics_listen = 127.0.0.1:0\nmetrics_token_file = {path}\n")
    bare.start()
    port = int(re.search(r"127\.0\.0\.1:(\d+)", bare.log())[1])


    def ask(where, header):
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        return bare.request("GET", where, headers={"Authorization": header} if header else {}, connection=c)
    assert ask("/metrics", None).status == 401
    assert ask("/metrics", "Bearer " + secrets.token_hex(32)).status == 401
    assert "lessor_device_free_bytes" in ask("/metrics", "Bearer " + token).raw.decode()
    assert ask("/healthz", "Bearer " + token).status == 200
    for where in ("/api/status", "/api/leases", "/api/openapi.json", "/"):
        assert ask(where, "Bearer " + token).status in (403, 404), where
