# SPDX-License-Identifier: Apache-2.0
"""What bash and zsh complete of `lessor …`: the script that lessor prints, in a real bash."""

import os
import re
import subprocess

import pytest

from cli_helpers import LESSOR, MIB, SIMGPU, Place, Terminal, until

COMPLETE = """
source /dev/fd/9 9<<< "$SCRIPT"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
compopt() { :; }
_lessor "$1" "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module", name="scripts")
def fixture_scripts():
    def made(shell):
        return subprocess.run([LESSOR, "completion", shell], stdout=subprocess.PIPE, check=True, text=True).stdout
    return {"bash": made("bash"), "zsh": made("zsh")}


@pytest.fixture(scope="module", name="place")
def fixture_place():
    place = Place()
    yield place
    place.close()


def offered(scripts, *words, env=None, cwd=None):
    """What bash offers for the last of the words, split as bash itself does it."""
    done = subprocess.run(["bash", "--noprofile", "--norc", "-c", COMPLETE, "bash", LESSOR, *words], check=False, text=True, cwd=cwd,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                          env={**os.environ, "LESSOR_SOCKET": "/nowhere/s", "SCRIPT": scripts["bash"], **(env or {})})
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout.split()


def verbs_of(help_text):
    return re.findall(r"^  (\w+) ", help_text.split("Verbs (each has --help):")[1].split("\n\n")[0], re.M)


def helped(*words):
    return subprocess.run([LESSOR, *words], stdout=subprocess.PIPE, check=True, text=True).stdout


def test_every_verb_and_option_is_completed(scripts):
    verbs = verbs_of(helped("help"))
    assert offered(scripts, "") == [*verbs, "--help", "--version"]
    for verb in verbs:
        assert verb in offered(scripts, verb[:3]), verb
        usage = helped(verb, "--help")
        parts = re.search(r"^usage: lessor \w+ ([a-z|]+) …$", usage, re.M)
        for words in ([[verb, part] for part in parts[1].split("|")] if parts else [[verb]]):
            options = re.findall(r"^  --([a-z-]+)", helped(*words, "--help"), re.M)
            assert offered(scripts, *words, "--") == ["--" + option for option in options], words


@pytest.mark.parametrize("words, wanted", [
    (["ren"], ["renice"]),
    (["lease", ""], ["acquire", "show", "renew", "release", "--help"]),
    (["config", "s"], ["show"]),
    (["lease", "acquire", "--ex"], ["--exclusive"]),
    (["run", "--priority", "u"], ["urgent"]),
    (["run", "--priority", "=", "in"], ["interactive"]),
    (["run", "--priority", "="], []),
    (["run", "--if-down", ""], ["wait", "run", "fail"]),
    (["lease", "acquire", "--if-down", ""], ["wait", "fail"]),
    (["run", "--name", "urg"], []),
    (["run", "--quiet", "--vi"], ["--visible"]),
    (["renice", "ba"], ["batch"]),
    (["renice", "--json", "f"], ["filler"]),
    (["completion", ""], ["bash", "zsh"]),
    (["help", "un"], ["unpin", "unadopt", "unapprove"]),
    (["status", "--watch", "--j"], ["--json"]),
    (["nosuchverb", ""], []),
], ids=lambda value: " ".join(value) if isinstance(value, list) else None)
def test_words_and_values_are_completed(scripts, words, wanted):
    if words[-1] == "=":
        words, wanted = [*words, ""], ["urgent", "interactive", "normal", "batch", "filler"]
    assert offered(scripts, *words) == wanted


def test_command_behind_run_is_completed_as_a_command(scripts, tmp_path):
    (tmp_path / "data file.txt").write_text("")
    for options in ([], ["--vram", "12G"], ["--vram", "=", "12G"], ["--exclusive", "--"], ["--quiet"]):
        assert "bash" in offered(scripts, "run", *options, "bas"), options
        assert "plan" not in offered(scripts, "run", *options, "pla"), options
    assert offered(scripts, "run", "--vram", "12G", "--", "cat", "data", cwd=tmp_path) == ["data", "file.txt"]
    assert offered(scripts, "run", "cat", "--vra", cwd=tmp_path) == []
    assert "bash" in offered(scripts, "plan", "bas")


def test_files_are_completed_where_a_file_is_meant(scripts, tmp_path):
    (tmp_path / "lessord.conf").write_text("")
    assert offered(scripts, "config", "check", "le", cwd=tmp_path) == ["lessord.conf"]


def test_what_only_lessord_knows_is_asked_and_quiet_without_it(scripts, place):
    assert offered(scripts, "why", "") == []
    lease = place.lessor("lease", "acquire", "--vram", "100M", "--ttl", "1h", "--name", "shown").stdout.strip()
    for words in (["why"], ["lease", "release"], ["extend"], ["renice", "batch"], ["pin", "--for", "2h"]):
        assert offered(scripts, *words, "", env=place.env) == [lease], words
    assert offered(scripts, "extend", lease, "3", env=place.env) == ["30m"]
    assert offered(scripts, "run", "--device", "GPU", env=place.env) == [place.card()[0]["uuid"]]
    stranger = subprocess.Popen([SIMGPU, "hog", "--alloc", "300M"], env=place.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    place.started.append(stranger)
    place.holds(300 * MIB)
    until("it is offered", lambda: offered(scripts, "adopt", "", env=place.env) == [str(stranger.pid)])
    assert place.lessor("lease", "release", lease).returncode == 0


def test_name_of_a_program_cannot_become_a_word_of_the_shell(place, tmp_path):
    odd = tmp_path / "$(touch hit)"
    odd.symlink_to(SIMGPU)
    stranger = subprocess.Popen([SIMGPU, "run", "--", str(odd), "hog", "--alloc", "200M"], env=place.env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path)
    place.started.append(stranger)
    place.holds(200 * MIB)

    def words():
        shown = place.lessor("__complete", "strangers").stdout
        return shown if "touch hit" in shown else None
    for line in until("it is listed", words).splitlines():
        assert re.fullmatch(r"[\w:./-]+\t[^\t]*", line), line


def test_completion_in_an_interactive_bash(scripts, place, tmp_path):
    (tmp_path / "rc").write_text(f"PS1='ready> '\nbind 'set enable-bracketed-paste off'\nalias l=:\n{scripts['bash']}\n")
    terminal = Terminal(["bash", "--noprofile", "--rcfile", str(tmp_path / "rc"), "-i"],
                        {**place.env, "TERM": "dumb", "INPUTRC": "/dev/null"})
    try:
        terminal.expect("ready> ")
        terminal.send(": lessor; lessor ver\t\n")
        terminal.expect(r"lessor \d+\.\d+\.\d+\r")
        terminal.expect("ready> ")
        terminal.send("lessor run --priority=bat\t--no-wai\t--vram 9G true\n")
        terminal.expect("can never fit")
        terminal.expect("ready> ")
        terminal.send("lessor run --vram 100M --  ech\tcompleted\n")
        terminal.expect("^completed\r")
        terminal.send("exit\n")
        assert terminal.wait() == 0
    finally:
        terminal.close()


def test_zsh_script_has_every_verb_and_option(scripts):
    """Real zsh is not where this runs; what the script is made of is."""
    text = scripts["zsh"]
    assert text.startswith("#compdef lessor\n") and text.rstrip().endswith('_lessor "$@"')
    assert text.count("{\n") == text.count("\n}\n") and text.count("case ") == text.count("esac\n")
    for verb in verbs_of(helped("help")):
        assert f"        '{verb}:" in text
        for option in re.findall(r"^  --([a-z-]+)", helped(verb, "--help"), re.M):
            assert re.search(rf"'--{option}[=\[-]", text), (verb, option)
    assert all(line.replace("'\\''", "").count("'") % 2 == 0 for line in text.splitlines()), "each quote is closed in its line"


@pytest.mark.parametrize("words", [["completion"], ["completion", "fish"], ["completion", "bash", "zsh"]], ids=" ".join)
def test_completion_of_what_is_no_shell_is_wrong_use(words):
    done = subprocess.run([LESSOR, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2 and done.stdout == "" and "See `lessor completion --help`" in done.stderr
