# SPDX-License-Identifier: Apache-2.0
"""schemathesis (which nobody here wrote) asks a running lessord what its own OpenAPI description promises: over TCP, once as
an administrator and once as a user. TAP."""

import os
import re
import secrets
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
from lessor_fixtures import Place  # noqa: E402

# Not asked: that everything the description allows succeeds (a lease that is over answers 410, and should).
CHECKS = ("not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
          "response_schema_conformance,negative_data_rejection,missing_required_header,ignored_auth,use_after_free,"
          "allow_header_conformance")


def venv():
    made = subprocess.run([os.path.join(HERE, "setup-api"), os.environ.get("SIMGPU_TEST_VENV_DIR", "/tmp")],
                          stdout=subprocess.PIPE, text=True, check=False)
    return made.stdout.strip() if made.returncode == 0 else None


def token_file(place, name):
    path = os.path.join(place.dir, name)
    with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
        file.write(secrets.token_hex(32) + "\n")
    return path


def judge(place, program, port, token, examples):
    with open(token, encoding="ascii") as file:
        secret = file.read().strip()
    asked = subprocess.run([program, "run", f"http://127.0.0.1:{port}/api/openapi.json", "-H", f"Authorization: Bearer {secret}",
                            "--max-examples", str(examples), "--request-timeout", "30", "--warnings", "off", "--checks", CHECKS,
                            "--generation-deterministic", "--suppress-health-check", "all"],
                           cwd=place.dir, capture_output=True, text=True, timeout=500, check=False)
    return asked.returncode == 0, asked.stdout[-6000:] + asked.stderr[-1000:]


def main():
    if os.environ.get("LESSOR_PEERS") == "off":
        print("1..0 # SKIP LESSOR_PEERS=off: other people's programs are not asked")
        return 0
    folder = venv()
    if not folder:
        print("1..1\nnot ok 1 - schemathesis could not be installed (LESSOR_PEERS=off skips it)")
        return 1
    program = os.path.join(folder, "bin", "schemathesis")
    place = Place()
    results = []
    try:
        users, admins = token_file(place, "users"), token_file(place, "admins")
        place.conf(f"tcp_listen = 127.0.0.1:0\ntcp_token_file = {users}\ntcp_admin_token_file = {admins}\ntcp_uid = 1000\n"
                   "requests_per_s = 0\n")
        place.start()
        port = re.search(r"127\.0\.0\.1:(\d+)", place.log())[1]
        for who, token, examples in (("an administrator", admins, 12), ("a user", users, 6)):
            begin = time.monotonic()
            good, words = judge(place, program, port, token, examples)
            results.append((f"the API is as it describes itself, asked by {who}", good,
                            words if not good else f"{time.monotonic() - begin:.0f} s"))
        results.append(("lessord lives, and ends well", place.stop() == 0, place.log()[-1000:]))
    finally:
        place.close()
    print(f"1..{len(results)}")
    for i, (name, good, words) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {i} - {name}")
        if not good:
            print("# " + words.replace("\n", "\n# "))
    return 0 if all(good for _, good, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
