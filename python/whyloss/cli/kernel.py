"""``whyloss kernel``: loss differentiation in the stock Linux kernel, for applications as they are."""

from __future__ import annotations

import datetime
import signal
import sys
from typing import Any

import click

from whyloss import _native
from whyloss.cli.console import Command, Group, as_json, printable, row, say, screen, table, tell_json

__all__ = ["kernel"]

UNUSABLE = 2


def _who(owner: dict[str, Any] | None) -> str:
    if owner is None:
        return "another version, which does not say for whom"
    at = datetime.datetime.fromtimestamp(owner["loaded_at"]).astimezone().isoformat(" ", "seconds")
    return f"{printable(owner['user'])} with `{printable(owner['command'])}` (process {owner['process']}) at {at}"


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


@kernel.command(
    cls=Command,
    examples=[
        "whyloss kernel load",
        "whyloss kernel load wl_veno wl_checksum",
        "whyloss kernel load --until-exit    # gone at Ctrl-C",
    ],
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=_complete)
@click.option("--until-exit", is_flag=True, help="Stay, and take them along when this command ends, however it ends.")
@as_json
def load(names: tuple[str, ...], until_exit: bool, as_json: bool) -> None:
    """Load congestion controls into the kernel, all if none is named.

    They stay until `whyloss kernel unload` or a reboot; no process has to run. No connection takes one by itself:
    `whyloss kernel use` chooses, or an application does (setsockopt TCP_CONGESTION). With wl_auto or wl_checksum among
    them, new connections of the machine offer an option in their SYN; name the others to load without it.
    """
    if until_exit:
        _stay(list(names), as_json)
        return
    loaded = _native.kernel_load(list(names))
    if as_json:
        tell_json(loaded)
        return
    say(f"loaded {', '.join(loaded['controls'])}; kept by a BPF file system on {loaded['mounted_on']}")
    _tell_of_options(_native.kernel_list())


def _tell_of_options(listing: dict[str, Any]) -> None:
    if "wl_options" in listing["programs"]:
        say("new connections of this machine offer reports of damage now: a TCP option in the SYN")
        say(_room(listing["interfaces"]))
    _warn_of_others(listing)


def _warn_of_others(listing: dict[str, Any]) -> None:
    """Options that two sets of programs write into one segment are no good to either."""
    if beside := listing["sets_beside"]:
        others = "another set of these programs is" if beside == 1 else f"{beside} other sets of these programs are"
        say(f"warning: {others} attached too, loaded at another place or in a container: what they report is disturbed")
        say("unload all but one: WHYLOSS_KERNEL_FOLDER and WHYLOSS_KERNEL_PREFIX name the place of the other")


def _room(interfaces: list[str] | None) -> str:
    """Where reports get room in acknowledgements."""
    if interfaces:
        return f"reports get room in acknowledgements at {', '.join(interfaces)}"
    return "reports get room at no interface of this network namespace and wait where SACK blocks leave none"


def _stay(names: list[str], as_json: bool) -> None:
    """Loads for as long as this process runs. The kernel takes the programs away if it is killed."""
    ends = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    # From here on one of them waits until it is asked for: nothing is done by halves.
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    held = _native.KernelHeld(names, lend=True)
    listing = _native.kernel_list()
    if as_json:
        tell_json(listing)
        sys.stdout.flush()
    else:
        loaded = [control["kernel_name"] for control in listing["controls"] if control["loaded"]]
        say(f"loaded {', '.join(loaded)} until this command ends   (Ctrl-C ends it)")
        _tell_of_options(listing)
    while held.is_there():
        if signal.sigtimedwait(ends, 0.2) is not None:
            removed = _native.kernel_unload()
            if not as_json:
                _tell_of_removal(removed)
            break
    else:
        say("another command has taken them out of the kernel")
    held.close()


@kernel.command(
    cls=Command, examples=["whyloss kernel unload", "whyloss kernel unload --force    # what another loaded"]
)
@click.option("--force", is_flag=True, help="Even what another user of this machine loaded, without a question.")
@as_json
def unload(force: bool, as_json: bool) -> None:
    """Take everything out of the kernel again: controls, rules, counters.

    Open connections go on. Those that have one of the controls get the usual one of their network namespace. What will
    change is said before; what another user loaded, or another process that still runs, goes only after a question.
    """
    before = _native.kernel_consequences()
    asks = before["of_another"] and not force
    if asks or not as_json:
        for line in _consequences(before):
            say(line)
    if asks and sys.stdin.isatty():
        click.confirm("Others may count on them. Take them out?", abort=True, err=True)
        force = True
    removed = _native.kernel_unload(force=force)
    if as_json:
        tell_json(removed)
    else:
        _tell_of_removal(removed)


def _consequences(before: dict[str, Any]) -> list[str]:
    """What `unload` is about to change, a line for each thing."""
    lines = [f"loaded by {_who(before['owner'])}"]
    if rules := len(before["rules"]):
        lines.append(f"{rules} rules of `use` go")
    if before["connections"] is None:
        lines.append("another version's open connections cannot be counted; they go on with the usual control")
    for share in before["connections"] or []:
        where = "" if share["own_namespace"] else f" in the network namespace {share['network_namespace']}"
        becomes = f"get {share['becomes']}" if share["becomes"] else "cannot be reached and keep it until they end"
        lines.append(f"open connections{where} with {share['control']}: {share['connections']} {becomes}")
    return lines


def _tell_of_removal(removed: dict[str, Any]) -> None:
    say(f"removed {', '.join(removed['controls'])}")
    if removed["moved"]:
        say(f"{removed['moved']} open connections had one of them and go on with the usual control")
    if removed["kept"]:
        say(f"{removed['kept']} open connections could not be reached and keep theirs until they end")


@kernel.command("list", cls=Command, examples=["whyloss kernel list", "whyloss kernel list --json"])
@as_json
def list_(as_json: bool) -> None:
    """List the controls, which of them are loaded, by whom, how many connections have them, and the rules of `use`."""
    found = _native.kernel_list()
    if as_json:
        tell_json(found)
        return
    listing = table("Controls", "name", "loaded", "in the kernel", ">connections")
    for control in found["controls"]:
        there = (control["kernel_name"], control["connections"]) if control["loaded"] else ("–", "–")
        row(listing, control["name"], "yes" if control["loaded"] else "no", *there)
    screen.print(listing)
    if found["loaded"]:
        running = ", which still runs" if found["owner_runs"] else ""
        screen.print(f"\nLoaded by {_who(found['owner'])}{running}", markup=False)
    if found["interfaces"] is not None:
        screen.print(_room(found["interfaces"]), markup=False)
    _warn_of_others(found)
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
