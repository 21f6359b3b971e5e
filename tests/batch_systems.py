"""Stand-ins for what takes and ends jobs in PBS Professional and LSF: ``qsub``, ``qdel``, ``bsub`` and ``bkill``.

They know what the manuals of both say of directives, of what a job inherits and of what is printed. Jobs start at once,
on this machine, and leave their scripts in a folder.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

#: Names the folder of the jobs. A file ``held`` in it makes jobs wait, ``slow`` the programs that take them, and what
#: ``notice`` says is all that they answer.
PLACE = "STAND_IN"
QUEUES = ("normal", "long")

#: Options with a value and without, of qsub(1B) and of bsub(1).
PBS = (set("aAcCeGJjklmMNopPqrRSuvW"), set("fhIVXz"))
LSF = (
    {*"abCDEeFfGgikLJMmnopPqRrStuUvwW", "app", "cwd", "Ep", "env", "eo", "is", "jsdl", "Lp", "oo", "sla", "sp"},
    {*"BHIKNOx", "Is", "Ip", "rn", "XF"},
)
#: How a value has to look, for the options and resources that jobs of Dask may have.
SIZE = r"\d+([kmgtp]?[bw])?"
VALUES = {
    ("qsub", "-N"): r"[\w+-][^\s]{0,229}",
    ("qsub", "-A"): r"\S+",
    ("qsub", "-l"): rf"walltime=((\d+:)?\d+:)?\d+|select=\d+(:(ncpus=\d+|mem={SIZE}|mpiprocs=\d+|\w+=\w+))*",
    ("bsub", "-n"): r"\d+(,\d+)?",
    ("bsub", "-M"): r"\d+([KMGTPEZ]B?)?",
    ("bsub", "-W"): r"(\d+:)?\d+(/\S+)?",
    ("bsub", "-R"): r"((select|order|rusage|span|same|cu|affinity)\[[^\]]+\]\s*)+",
    ("bsub", "-J"): r"\S{1,4094}",
}


def refuse(reason: str, status: int) -> NoReturn:
    print(reason, file=sys.stderr)
    sys.exit(status)


def directives(script: str, mark: str) -> list[list[str]]:
    """The words of each directive: they end where the first command begins."""
    lines = [line for line in script.splitlines() if line.strip()]
    head = itertools.takewhile(lambda line: line.startswith("#"), lines)
    return [shlex.split(line.removeprefix(mark)) for line in head if line.startswith(f"{mark} ")]


def asked(command: str, script: str) -> list[tuple[str, str]]:
    """Options and their values, all of them as the manual has them."""
    mark, (valued, flags) = ("#PBS", PBS) if command == "qsub" else ("#BSUB", LSF)
    found = []
    for option, *values in directives(script, mark):
        name = option.removeprefix("-")
        if not option.startswith("-") or name not in valued | flags or len(values) != (name in valued):
            if command == "qsub":
                refuse(f"qsub: directive error: {' '.join([option, *values])}\n", 2)
            refuse(f"{option}: Illegal option. Job not submitted.", 255)
        value = values[0] if values else ""
        flag = re.IGNORECASE if command == "qsub" else 0
        if not re.fullmatch(VALUES.get((command, option), ".*"), value, flag):
            if command == "qsub":
                refuse(f"qsub: illegally formed value for {option}: {value}", 170)
            refuse(f"{value}: Bad argument for option {option}. Job not submitted.", 255)
        if option == "-q" and value not in QUEUES:
            refuse("qsub: Unknown queue" if command == "qsub" else f"{value}: No such queue. Job not submitted.", 170)
        found.append((option, value))
    return found


def own(path: Path) -> bool:
    """Whether nobody else has made the file: jobs are taken at the same time."""
    try:
        path.touch(0o700, exist_ok=False)
    except FileExistsError:
        return False
    return True


def submit(command: str, words: list[str]) -> None:
    if command == "bsub" and words:
        refuse("a script that is named, and not read from standard input, has no directives. Job not submitted.", 255)
    script = Path(words[0]).read_text() if words else sys.stdin.read()
    options = dict(asked(command, script))
    place = Path(os.environ[PLACE])
    if (place / "notice").exists():
        print((place / "notice").read_text())
        return
    if (place / "slow").exists():
        (place / f"{os.getpid()}.begun").touch()
        time.sleep(2)
    number = 101
    while not own(kept := place / f"{number}.sh"):
        number += 1
    kept.write_text(script)
    out, err = (Path(options[name].replace("%J", str(number))) for name in ("-o", "-e"))
    where, environment = str(Path.cwd()), {**os.environ, "LSB_JOBID": str(number)}
    if command == "qsub":
        # A folder gets files named by the job. The job begins at home, and inherits nothing but what qsub(1B) names.
        out, err = out / f"{number}.OU", err / f"{number}.ER"
        where = os.environ["HOME"]
        given = {name: os.environ[name] for name in ("HOME", "PYTHONPATH") if name in os.environ}
        environment = {
            **given,
            "PATH": "/usr/bin:/bin",
            "PBS_ENVIRONMENT": "PBS_BATCH",
            "PBS_JOBID": f"{number}.server",
        }
    if not (place / "held").exists():
        with out.open("w") as stdout, err.open("w") as stderr:
            job = subprocess.Popen(
                [kept],
                cwd=where,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        (place / f"{number}.group").write_text(str(job.pid))
    queue = options.get("-q")
    said = f"queue <{queue}>" if queue else "default queue <normal>"
    print(f"{number}.server" if command == "qsub" else f"Job <{number}> is submitted to {said}.")


def end(command: str, name: str) -> None:
    """Ends a job as both do: they ask at first."""
    place = Path(os.environ[PLACE])
    number = name.partition(".")[0]
    if not (place / f"{number}.sh").exists() or (place / f"{number}.ended").exists():
        refuse(f"qdel: Unknown Job Id {name}" if command == "qdel" else f"Job <{name}>: No matching job found", 153)
    (place / f"{number}.ended").touch()
    group = place / f"{number}.group"
    if group.exists():
        for ask in (signal.SIGTERM, signal.SIGKILL):
            for _ in range(50):
                try:
                    os.killpg(int(group.read_text()), ask)
                except ProcessLookupError:
                    break
                time.sleep(0.1)
    if command == "bkill":
        print(f"Job <{name}> is being terminated")


if __name__ == "__main__":
    program, *arguments = sys.argv[1:]
    if program in ("qsub", "bsub"):
        submit(program, arguments)
    else:
        for argument in arguments:
            end(program, argument)
