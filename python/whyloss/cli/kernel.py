"""``whyloss kernel``: loss differentiation in the stock Linux kernel, for applications as they are."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from whyloss import _native
from whyloss.cli.console import Command, Group, as_json, printable, row, say, screen, table, tell_json

__all__ = ["kernel"]

UNUSABLE = 2
#: Who loaded the controls; it goes with the next start of the machine, as they do.
LOADED_BY = Path("/run/whyloss/loaded-by")


def _user() -> str:
    """Who asks: whoever became root by sudo is still himself."""
    import pwd  # Windows has none

    return os.environ.get("SUDO_USER") or pwd.getpwuid(os.getuid()).pw_name


def _loaded_by() -> str:
    try:
        return printable(LOADED_BY.read_text(errors="replace")[:100]) or "nobody that is noted"
    except OSError:
        return "another program"


@click.group(
    cls=Group,
    linux="congestion controls in BPF",
    examples=[
        "whyloss kernel check                       # can this kernel do it?",
        "whyloss kernel load                        # load the congestion controls",
        "whyloss kernel use wl_veno --port 443      # for which new connections",
        "whyloss kernel stat                        # what they have done",
        "whyloss kernel unload                      # and everything is as before",
    ],
)
def kernel() -> None:
    """Loss differentiation in this machine's kernel, for applications as they are.

    The system's default control is never changed. Everything but `check` needs root.
    """


@kernel.command(
    cls=Command,
    examples=["whyloss kernel check", "whyloss kernel check --json"],
    also=["2 too if no control can be loaded"],
)
@as_json
@click.pass_context
def check(context: click.Context, as_json: bool) -> None:
    """Say what this kernel can do and what is missing."""
    report = _native.kernel_check()
    if as_json:
        tell_json(report)
    else:
        listing = table("", "", "what", "found", "needed for")
        for item in report["items"]:
            mark = {True: "yes", False: "NO", None: "?"}[item["holds"]]
            row(listing, mark, item["name"], item["found"], item["purpose"])
        screen.print(listing)
        ready = "the kernel part can be used: `whyloss kernel load`"
        say(ready if report["ready"] else "the kernel part cannot be used here")
    context.exit(0 if report["ready"] else UNUSABLE)


def _complete(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Names of our controls for the shell."""
    names = {name for name in _native.kernel_schemes().values() if name.startswith("wl_")}
    return sorted(name for name in names if name.startswith(begun))


@kernel.command(cls=Command, examples=["whyloss kernel load", "whyloss kernel load wl_veno wl_checksum"])
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=_complete)
@as_json
def load(names: tuple[str, ...], as_json: bool) -> None:
    """Load congestion controls into the kernel, all if none is named.

    They stay until `whyloss kernel unload` or a reboot; no process has to run. No connection takes one by itself:
    `whyloss kernel use` chooses, or an application does (setsockopt TCP_CONGESTION). With wl_checksum among them, new
    connections of the machine offer an option in their SYN; name the others to load without it.
    """
    before = _native.kernel_list()["loaded"]
    loaded = _native.kernel_load(list(names))
    if not before:
        LOADED_BY.parent.mkdir(parents=True, exist_ok=True)
        LOADED_BY.write_text(_user())
    if as_json:
        tell_json(loaded)
        return
    say(f"loaded {', '.join(loaded['controls'])}; kept by a BPF file system on {loaded['mounted_on']}")
    if "wl_options" in loaded["programs"]:
        say("new connections of this machine offer reports of damage now: a TCP option in the SYN, for wl_checksum")


@kernel.command(
    cls=Command, examples=["whyloss kernel unload", "whyloss kernel unload --force    # what another loaded"]
)
@click.option("--force", is_flag=True, help="Even what another user of this machine loaded, without a question.")
@as_json
def unload(force: bool, as_json: bool) -> None:
    """Take everything out of the kernel again: controls, rules, counters.

    Open connections go on. Those that have one of the controls get the usual one of their network namespace.
    """
    if not force and _native.kernel_list()["loaded"] and (owner := _loaded_by()) != _user():
        told = f"the controls were loaded by {owner}, whose connections may use them"
        if not sys.stdin.isatty():
            raise click.UsageError(f"{told}; --force takes them away")
        click.confirm(f"{told}; take them away?", abort=True, err=True)
    removed = _native.kernel_unload()
    LOADED_BY.unlink(missing_ok=True)
    if as_json:
        tell_json(removed)
        return
    say(f"removed {', '.join(removed['controls'])}")
    if removed["moved"]:
        say(f"{removed['moved']} open connections had one of them and go on with the usual control")
    if removed["kept"]:
        say(f"{removed['kept']} open connections could not be reached and keep theirs until they end")


@kernel.command("list", cls=Command, examples=["whyloss kernel list", "whyloss kernel list --json"])
@as_json
def list_(as_json: bool) -> None:
    """List the controls, which of them are loaded, and the rules of `use`."""
    found = _native.kernel_list()
    if as_json:
        tell_json(found)
        return
    listing = table("Controls", "name", "loaded", "in the kernel")
    for control in found["controls"]:
        there = control["kernel_name"] if control["loaded"] else "–"
        row(listing, control["name"], "yes" if control["loaded"] else "no", there)
    screen.print(listing)
    if found["rules"]:
        listing = table("\nRules for new connections", "control", ">port", "remote addresses", "group", ">connections")
        for rule in found["rules"]:
            port = "any" if rule["port"] is None else rule["port"]
            row(listing, rule["control"], port, rule["prefix"] or "any", rule["cgroup"], rule["connections"])
        screen.print(listing)
    if found["loaded"] and not found["matches"]:
        say(
            f"loaded by whyloss {found['loaded']['version']}, which has other programs than this one: "
            "unload them to load these"
        )


@kernel.command(
    "use",
    cls=Command,
    examples=[
        "whyloss kernel use wl_veno --port 443            # of a service, at whichever end it is",
        "whyloss kernel use wl_veno --prefix 10.0.0.0/8   # by the other end's address",
        "whyloss kernel use wl_veno --cgroup /web.slice   # of the processes in a control group",
        "whyloss kernel use wl_veno --all",
        "whyloss kernel use --remove --port 443",
    ],
)
@click.argument("name", required=False, shell_complete=_complete)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="The port of the service, at whichever end it is.",
)
@click.option("--prefix", metavar="CIDR", help="The other end's address, IPv4 or IPv6.")
@click.option(
    "--cgroup", metavar="PATH", type=click.Path(path_type=str), help="Only processes in this control group (v2)."
)
@click.option("--all", "everything", is_flag=True, help="All new connections.")
@click.option("--remove", is_flag=True, help="Take the rule back.")
def use(
    name: str | None, port: int | None, prefix: str | None, cgroup: str | None, everything: bool, remove: bool
) -> None:
    """Choose the control NAME for new connections.

    Conditions that are given together must all hold. Of several rules that fit, the one of the innermost control
    group decides, then one with a port, then the one with the longest prefix. An application that asks for a control
    itself gets it. Open connections keep what they have.
    """
    if everything == (port is not None or prefix is not None or cgroup is not None):
        raise click.UsageError("say which connections: --port, --prefix, --cgroup, or --all alone")
    if (name is None) != remove:
        raise click.UsageError("--remove takes no NAME" if remove else "Missing argument 'NAME'.")
    if name is None:
        _native.kernel_take_back(port, prefix, cgroup)
    else:
        _native.kernel_use(name, port, prefix, cgroup)


@kernel.command(cls=Command, examples=["whyloss kernel stat", "whyloss kernel stat --json"])
@as_json
def stat(as_json: bool) -> None:
    """Show what the controls have counted, for each of them and for each open connection."""
    found = _native.kernel_stat()
    if as_json:
        tell_json(found)
        return
    counted = {name for counts in found["controls"].values() for name, count in counts.items() if count}
    # What has not happened yet needs no column.
    meanings = [(name, what) for name, what in _native.kernel_counters() if name == "connections" or name in counted]
    listing = table("Since they were loaded", "control", *(f">{name}" for name, _ in meanings))
    for control, counts in found["controls"].items():
        row(listing, control, *(counts[name] for name, _ in meanings))
    screen.print(listing)
    if reports := found["reports"]:
        listing = table("\nReports of damage, on the whole machine", "what", ">count", "that is")
        for name, what in _native.kernel_report_counters():
            if name == "agreed" or reports[name]:
                row(listing, name, reports[name], what)
        screen.print(listing)
    listing = table(
        "\nOpen connections",
        "control",
        "local",
        "remote",
        ">cwnd",
        ">srtt ms",
        ">losses",
        ">kept",
        ">timeouts",
        ">acked",
    )
    for connection in found["connections"]:
        counts = connection["counts"]
        row(
            listing,
            connection["control"],
            connection["local"],
            connection["remote"],
            connection["cwnd_segments"],
            f"{connection['srtt_us'] / 1000:.1f}",
            counts["losses"],
            counts["kept"],
            counts["timeouts"],
            connection["acked_bytes"],
        )
    screen.print(listing)
    for name, what in meanings:
        say(f"{name}: {what}")
