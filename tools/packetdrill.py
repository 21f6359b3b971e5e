"""Runs packetdrill scripts against the engine, and says by folder how many pass.

packetdrill and public scripts are GPL-2.0 and no part of this repository: name the program and a folder of your own.
A script's opening shell commands configure a real host; here they are taken away and given to the shared object, which
follows those that it can.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

OPENING = re.compile(r"^`(.*?)`", re.MULTILINE | re.DOTALL)
COMMENTS = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)
# What only clears up behind a script.
HARMLESS = re.compile(r"^\s*(\S*/)?(sysctl_restore_\S*|defaults\.sh)\s*$")
LOCAL = "192.168.0.1"
# What packetdrill's own runner defines for IPv4.
DEFINITIONS = [
    "-D",
    "TFO_COOKIE=3021b9d889017eeb",
    "-D",
    "CODE=host_unreachable",
    "-D",
    "CMSG_LEVEL_IP=SOL_IP",
    "-D",
    "CMSG_TYPE_RECVERR=IP_RECVERR",
]


def split(text: str) -> tuple[str, str]:
    """The shell commands before the first event, and the script without them."""
    code = COMMENTS.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    found = OPENING.search(code)
    if not found or re.search(r"^\s*[+*0-9]", code[: found.start()], re.MULTILINE):
        return "", text
    start, end = found.span()
    return text[start + 1 : end - 1], text[:start] + "\n" * text[start:end].count("\n") + text[end:]


def follow(text: str, later: Path) -> str:
    """The script with its further shell commands handed to the shared object, by a file that it reads."""

    def handed(match: re.Match[str]) -> str:
        command = match[1].strip()
        if HARMLESS.match(command):
            return "`true`"
        words = "; ".join(line.strip() for line in command.replace("\\\n", " ").splitlines() if line.strip())
        return f"`printf '%s\\n' {shlex.quote(words)} >> {later}`"

    return re.sub(r"`([^`]*)`", handed, text)


def addresses(script: Path, text: str) -> list[str]:
    """The addresses to run a script with, if it names none; one whose name ends with the version is for IPv6."""
    if own_address(text):
        return []
    if script.stem.endswith("v6"):
        return ["--ip_version=ipv6"]
    return ["--ip_version=ipv4", f"--local_ip={LOCAL}"]


def own_address(text: str) -> list[str]:
    """The address that the script wants the shared object to have."""
    return [f"address={address}" for address in re.findall(r"^--local_ip=(\S+)", text, re.MULTILINE)]


def run(script: Path, packetdrill: Path, shared_object: Path, flags: list[str], timeout_s: float) -> tuple[str, str]:
    """The result of one script, and why."""
    commands, rest = split(script.read_text(encoding="utf-8", errors="replace"))
    with tempfile.TemporaryDirectory() as folder:
        later = Path(folder, "commands")
        later.touch()
        copy = Path(folder, script.name)
        copy.write_text(follow(rest, later), encoding="utf-8")
        command = [
            str(packetdrill),
            f"--so_filename={shared_object}",
            "--so_flags=" + "\n".join([*flags, *own_address(rest), f"commands={later}", commands]),
            *DEFINITIONS,
            *addresses(script, rest),
            str(copy),
        ]
        try:
            result = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                check=False,
                cwd=script.parent,
                env={**os.environ, "LD_PRELOAD": str(shared_object)},
            )
        except subprocess.TimeoutExpired:
            return "failed", f"no end after {timeout_s:g} s"
    said = (result.stderr + result.stdout).replace(f"{folder}/", "").strip().splitlines()
    missing = [line.split("not supported: ", 1)[1] for line in said if "whyloss: not supported: " in line]
    if missing:
        return "unsupported", missing[0]
    if result.returncode == 0 and not any("error" in line for line in said):
        return "passed", ""
    if any("semantic error" in line for line in said):
        return "unsupported", "packetdrill does not understand it without its own preparation"
    return "failed", next((line for line in said if ":" in line), f"status {result.returncode}")


def program(name: str) -> Path:
    """The program: a file, wherever scripts are run, or a command on the path."""
    found = shutil.which(name)
    if found is None:
        raise argparse.ArgumentTypeError(f"there is no program {name!r}: name packetdrill's own file")
    return Path(found).resolve()


def main() -> int:
    """Runs all scripts; exit status 0 if none failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", type=Path, nargs="+", help="scripts, or folders of them")
    parser.add_argument("--packetdrill", type=program, default="packetdrill", help="the program")
    parser.add_argument("--so", type=Path, required=True, help="libwhyloss_packetdrill.so")
    parser.add_argument(
        "--set", dest="flags", action="append", default=[], metavar="KEY=VALUE", help="profile=modern …"
    )
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds for one script")
    parser.add_argument("--json", type=Path, help="file for all results")
    arguments = parser.parse_args()
    root = arguments.scripts[0]
    found = [path for at in arguments.scripts for path in ([at] if at.is_file() else sorted(at.rglob("*.pkt")))]
    groups: dict[str, Counter[str]] = defaultdict(Counter)
    results = []
    for script in found:
        result, why = run(
            script.resolve(), arguments.packetdrill, arguments.so.resolve(), arguments.flags, arguments.timeout
        )
        name = script.relative_to(root) if script.is_relative_to(root) else script
        groups[str(name.parent)][result] += 1
        results.append({"script": str(name), "result": result, "why": why})
        print(f"{result:12} {name}{f'  {why}' if why else ''}")
    print(f"\n{'group':32} passed failed unsupported")
    for group, counts in [*sorted(groups.items()), ("all", sum(groups.values(), Counter()))]:
        print(f"{group:32} {counts['passed']:6} {counts['failed']:6} {counts['unsupported']:11}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    return int(any(result["result"] == "failed" for result in results))


if __name__ == "__main__":
    sys.exit(main())
