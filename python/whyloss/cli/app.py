"""The group of commands, and what becomes of errors."""

from __future__ import annotations

import io
import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import click

import whyloss
from whyloss import _native
from whyloss.cli import (
    catalogue,
    compare,
    demo,
    explain,
    fit,
    friendly,
    kernel,
    link,
    papers,
    plot,
    report,
    runs,
    scores,
    shell,
    start,
    sweeps,
    testbed,
    top,
    wire,
)
from whyloss.cli.console import INTERRUPTED, SPELT, Group, complain, printable, say
from whyloss.extras import hint
from whyloss.pack import PackError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["main"]

#: Nobody reads the output: as if SIGPIPE, which is not known everywhere, had ended it.
UNREAD = 128 + 13


class App(Group):
    """All commands. A pipe that is closed ends them with a status of its own, which click and rich would make 1."""

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
@click.version_option(whyloss.__version__, "-V", "--version", prog_name="whyloss")
def app() -> None:
    """Find out why TCP lost a packet, congestion or corruption, and what each answer is worth.

    Results go to standard output, progress and messages to standard error.
    """


for command in (
    runs.run,
    sweeps.sweep,
    sweeps.verify,
    compare.compare,
    friendly.friendly,
    plot.plot,
    explain.explain,
    fit.fit,
    scores.score,
    scores.roc,
    papers.reproduce,
    papers.papers,
    catalogue.schemes,
    catalogue.describe,
    report.report,
    link.link,
    testbed.testbed,
    testbed.emulate,
    wire.serve,
    wire.fetch,
    kernel.kernel,
    demo.demo,
    top.top,
    start.init,
    start.examples,
    shell.cache,
    shell.completion,
):
    app.add_command(command)


def main() -> NoReturn:
    """Runs the command and ends the process with its exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name that the terminal's encoding does not know shall not end the command.
        sys.stdout.reconfigure(errors=SPELT)
    interrupt_once()
    sys.exit(_run())


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
    except (_native.InputError, _native.UnavailableError, PackError) as mistake:
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
