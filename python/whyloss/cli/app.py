"""The group of commands, and what becomes of errors."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import MutableMapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import click

from whyloss import _native
from whyloss.cli.console import INTERRUPTED, SPELT, Group, complain, printable, say
from whyloss.cli.loading import load
from whyloss.extras import hint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType

__all__ = ["main"]

#: Nobody reads the output: as if SIGPIPE, which is not known everywhere, had ended it.
UNREAD = 128 + 13


#: Where each command is, and the first sentence of its help, which a list of commands says without importing it.
_COMMANDS = {
    "run": ("runs", "Run a scenario once: who got what, what was lost and why."),
    "sweep": (
        "sweeps",
        "Run a scenario at every point of a sweep, on all cores, or with --on on the machines of a cluster.",
    ),
    "verify": ("sweeps", "Run results again, and say whether the same rows come out."),
    "compare": ("compare", "Compare schemes on a link: who wins, by how much, and whether that is certain."),
    "friendly": (
        "friendly",
        "Tell what flows of scheme A do to flows of scheme B that share their path, and the other way round.",
    ),
    "plot": ("plot", "Draw what happened in a run, or in several over each other."),
    "explain": (
        "explain",
        "Explain a capture: why it is slow, and a cause with evidence for every packet that TCP lost.",
    ),
    "fit": ("fit", "Fit a path to captures: a scenario whose simulation looks like what was captured at the sender."),
    "score": ("scores", "Score loss differentiators against what really happened."),
    "roc": ("scores", "Draw what each differentiator gives at every threshold: A_w over A_c."),
    "reproduce": ("papers", "Run the experiments of a paper, draw its figures and judge its claims."),
    "papers": ("papers", "List the papers that can be reproduced, and what their full runs found in each reading."),
    "schemes": ("catalogue", "List the schemes of the literature and the parts that they are made of."),
    "describe": ("catalogue", "Explain a scheme, a part, a profile, or a field of the scenario format."),
    "report": ("report", "Write the report of a run or of a reproduction, and say where it lies."),
    "link": ("link", "Run a program behind a link of so much DELAY in each direction and such a RATE."),
    "testbed": ("testbed", "Put the network of a scenario between real hosts, and run commands on them."),
    "emulate": ("testbed", "Put the [path] of a scenario, or its only link, between two TUN devices of this machine."),
    "serve": ("wire", "Offer files over HTTP, on a host in user space whose TCP is the engine."),
    "fetch": ("wire", "Fetch a file over HTTP, with the engine's TCP, from any web server."),
    "kernel": ("kernel", "Loss differentiation in this machine's kernel, for applications as they are."),
    "demo": ("demo", "See it work, in network namespaces that vanish afterwards."),
    "top": ("top", "Show every TCP connection of this machine, whatever its congestion control, and why it loses."),
    "init": (
        "start",
        "Begin a scenario: write a small one with comments, and the schema that editors complete its fields by.",
    ),
    "examples": ("start", "List the examples that the package brings, or copy one to begin with."),
    "cache": ("shell", "Show the finished runs that are kept, or remove them."),
    "completion": (
        "shell",
        "Print what makes a shell complete commands, options, schemes, papers, fields of scenarios and files.",
    ),
}

#: Modules of commands that do without tables. The others need polars, and get it before Ctrl-C is theirs to answer.
_WITHOUT_TABLES = frozenset({"kernel", "start", "top"})


class _Commands(MutableMapping[str, click.Command]):
    """The commands by name. Each is imported when it is asked for: some take longer to import than others to run."""

    def __init__(self, where: Mapping[str, tuple[str, str]]) -> None:
        self._where = where
        self._found: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._found:
            module, _ = self._where[name]
            if module not in _WITHOUT_TABLES:
                load("polars")
            self._found[name] = getattr(load(f"whyloss.cli.{module}"), name)
        return self._found[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._found[name] = command

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"{name} stays")

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._where, *self._found]))

    def __len__(self) -> int:
        return len(list(iter(self)))


class App(Group):
    """All commands. A pipe that is closed ends them with a status of its own, which click and rich would make 1."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Takes what every group takes."""
        super().__init__(*args, **kwargs)
        self.commands = _Commands(_COMMANDS)

    def sentence(self, name: str) -> str:
        """What a list of commands says of one."""
        return _COMMANDS[name][1]

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Reads what was typed; help is printed here."""
        with _ending_unread():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Carries it out."""
        with _ending_unread():
            return super().invoke(ctx)


@contextmanager
def _ending_unread() -> Iterator[None]:
    try:
        yield
    except (BrokenPipeError, SystemExit) as end:
        if not any(isinstance(one, BrokenPipeError) for one in (end, end.__context__)):
            raise
        # The reader has seen enough (`whyloss schemes | head`): nobody is left to tell.
        raise click.exceptions.Exit(UNREAD) from None


@click.group(
    cls=App,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    examples=[
        "whyloss init my-link                    # a scenario to begin with: my-link.toml",
        "whyloss reproduce garcia2004 --quick    # a paper: its figures, and a verdict on each of its claims",
        "whyloss run SCENARIO.toml               # one scenario: who got what, what was lost and why",
        "whyloss plot --rate 10Mbps --loss 1%    # windows on such a link, and each loss by its true cause",
        "whyloss compare --rate 10Mbps --loss 1% # is differentiation worth it on such a link?",
        "whyloss explain FILE.pcapng             # a capture: why each lost packet was lost",
        "sudo whyloss top                        # this machine: every TCP connection, and why it loses",
    ],
    sections={
        "Begin": ["init", "examples"],
        "Simulate": ["run", "plot", "compare", "friendly", "sweep", "verify", "report"],
        "Look things up": ["schemes", "describe"],
        "Judge differentiators": ["score", "roc"],
        "Papers": ["papers", "reproduce"],
        "Captures": ["explain", "fit"],
        "Real packets (most need root)": ["link", "testbed", "emulate", "serve", "fetch", "kernel", "top", "demo"],
        "This machine": ["cache", "completion"],
    },
)
@click.version_option(_native.VERSION, "-V", "--version", prog_name="whyloss")
def app() -> None:
    """Find out why TCP lost a packet, congestion or corruption, and what each answer is worth.

    Results go to standard output, progress and messages to standard error.
    """


def main() -> NoReturn:
    """Runs the command and ends the process with its exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name that the terminal's encoding does not know shall not end the command.
        sys.stdout.reconfigure(errors=SPELT)
    if isinstance(sys.stderr, io.TextIOWrapper) and sys.stderr is sys.__stderr__:
        sys.stderr = _Unheard(sys.stderr.buffer, sys.stderr.encoding, sys.stderr.errors, line_buffering=True)
    interrupt_once()
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)
    status = _run()
    if status == INTERRUPTED and _terminated:
        # All is put away; now it ends as whoever sent the signal expects.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
    sys.exit(status)


class _Unheard(io.TextIOWrapper):
    """Standard error, which goes nowhere once nobody takes it: that decides nothing about how a command ended."""

    def write(self, text: str) -> int:
        """Writes, if somebody takes it."""
        try:
            return super().write(text)
        except OSError:
            self._give_up()
            return len(text)

    def flush(self) -> None:
        """Writes what is held, if somebody takes it."""
        try:
            super().flush()
        except OSError:
            self._give_up()

    def _give_up(self) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)


#: Whether SIGTERM came, at which a command puts away what it began, as at Ctrl-C.
_terminated: list[int] = []


def _terminate(number: int, _frame: FrameType | None) -> NoReturn:
    _terminated.append(number)
    raise KeyboardInterrupt


def interrupt_once() -> None:
    """Makes one Ctrl-C one ``KeyboardInterrupt``.

    polars brings a handler of its own when it is imported, beside Python's. Each raises one, and the second comes while
    the first is answered: what is known by then is not told.
    """
    own = signal.getsignal(signal.SIGINT)
    if own is not None:
        signal.signal(signal.SIGINT, own)


def _run() -> int:
    try:
        status = app.main(standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as mistake:
        told = io.StringIO()
        mistake.show(told)
        click.echo(printable(told.getvalue()), err=True, nl=False)
        return mistake.exit_code
    except (_native.InputError, _native.UnavailableError) as mistake:
        complain(str(mistake))
        return 2
    except (KeyboardInterrupt, click.Abort):
        say("stopped")
        return INTERRUPTED
    except _native.PanicException:
        # What to report was told when it happened.
        return 1
    except BrokenPipeError:
        status = UNREAD
    except ModuleNotFoundError as missing:
        if (brings := hint(missing)) is None:
            raise
        complain(brings)
        return 1
    except OverflowError as mistake:
        complain(f"a number is too large: {mistake}")
        return 2
    except OSError as failure:
        where = f"{failure.filename}: " if failure.filename else ""
        complain(f"{where}{failure.strerror or failure}")
        return 1
    except _native.WhylossError as failure:
        complain(str(failure))
        return 1
    if status == UNREAD:
        # What is still to be written goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status if isinstance(status, int) else 0
