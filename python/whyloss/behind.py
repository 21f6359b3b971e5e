"""Programs behind an emulated link: this machine is at its one end, a program at the other.

The program has a network namespace of its own, whose only device is the link. It reaches this machine under the address
that :attr:`Link.host` gives, and what this machine forwards. Nothing is left behind, however the process ends. Needs
root on Linux, with ``ip``, ``nsenter`` and ``unshare`` (iproute2 and util-linux).
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from whyloss import _native
from whyloss.testbed import Bridge

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from whyloss.scenario import Scenario

__all__ = ["Link"]

#: Two addresses a link, of what RFC 6598 sets aside for networks behind another one.
_NETWORK = "100.{}.{}"
_FIRST, _SECOND = 64, 127
_TOOLS = ("ip", "nsenter", "unshare")
_PATIENCE_S = 10.0
#: How long connections of this machine with programs that have ended may take to close.
_LAST_S = 2.0
#: FIN-WAIT-1, LAST-ACK and CLOSING: our end is not acknowledged (include/net/tcp_states.h).
_CLOSING = ("04", "09", "0B")
#: What a namespace's connections still send goes nowhere, and would keep it for two minutes.
_GIVE_UP = "echo 1 > /proc/sys/net/ipv4/tcp_orphan_retries"
#: No addresses of IPv6, which the kernel would announce before anybody is there. Another namespace forgets it.
_UNANNOUNCED = ("addrgenmode", "none")
#: Waits until the link is set up, then becomes the program. (dash takes descriptors up to 9 only.)
_WAIT = """
import os, signal, sys
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
os.read(int(sys.argv[1]), 1) or os._exit(125)
os.close(int(sys.argv[1]))
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as failure:
    allowed = "a program, or a script whose first line names what reads it, such as #!/bin/sh"
    print(f"error: {sys.argv[2]}: {failure.strerror}; allowed: {allowed}", file=sys.stderr, flush=True)
    os._exit(127 if isinstance(failure, FileNotFoundError) else 126)
"""
_MASQUERADE = """
table ip {name} {{
    flags owner
    chain behind {{
        type nat hook postrouting priority srcnat
        ip saddr {address} masquerade
    }}
}}
"""


class Link:
    """The link of a scenario's ``[path]`` between this machine and the programs that are started here.

    >>> with Link(wl.path(rate="10 Mbps", delay="20 ms", loss="1 %")) as link:
    ...     link.run(["curl", "--output", "/dev/null", f"http://{link.host}:8000/"])

    This machine has the place of ``server``, the program that of ``client``.
    """

    def __init__(self, scenario: Scenario, *, run: int = 0, outside: bool = True) -> None:
        """Builds it.

        Args:
            scenario: a scenario with a ``[path]``, or a single link.
            run: number of the run: other numbers, other random errors.
            outside: let programs reach beyond this machine, if it forwards (``net.ipv4.ip_forward``) and has ``nft``:
                packets leave it under its own address then.

        Raises:
            whyloss.UnavailableError: this machine, or this user, cannot have one.
            whyloss.InputError: the scenario has what no wire can do.
        """
        _check()
        number = os.getpid()
        name = f"wl{number % 10**7}"
        self._ours, self._theirs = f"{name}o", f"{name}i"
        block = number % ((_SECOND - _FIRST) * 64 * 256)
        second, rest = _FIRST + block // (64 * 256), block % (64 * 256)
        prefix, last = _NETWORK.format(second, rest // 64), 4 * (rest % 64)
        self.host, self.guest = f"{prefix}.{last + 1}", f"{prefix}.{last + 2}"
        self.reaches_out = False
        self._nft: subprocess.Popen[str] | None = None
        self._namespaces: list[int] = []
        # The hosts are real: delays in them need not be made up.
        scenario = scenario.replace({"scenario.send_overhead": "0 ns"})
        self.bridge = Bridge(scenario, (self._ours, self._theirs), run=run, truth=False)
        try:
            _ip("link", "set", "dev", self._ours, *_UNANNOUNCED)
            _ip("address", "add", f"{self.host}/30", "dev", self._ours)
            self.why_not_out = self._masquerade(name) if outside else "it was not asked for"
        except BaseException:
            self.close()
            raise

    def _masquerade(self, name: str) -> str:
        """Lets programs reach beyond this machine; why they do not, if they do not."""
        if Path("/proc/sys/net/ipv4/ip_forward").read_text(encoding="ascii").strip() != "1":
            return "this machine forwards nothing (sysctl -w net.ipv4.ip_forward=1 lets it)"
        nft = shutil.which("nft")
        if nft is None:
            return "there is no `nft` that could give packets this machine's address"
        # The table goes when this process does: it belongs to the connection that made it.
        self._nft = subprocess.Popen(
            [nft, "-i"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        assert self._nft.stdin is not None
        self._nft.stdin.write(" ".join(_MASQUERADE.format(name=name, address=self.guest).replace("\n", "; ").split()))
        self._nft.stdin.write("\n")
        self._nft.stdin.flush()
        self.reaches_out = True
        return ""

    def popen(self, argv: Sequence[str], **kwargs: Any) -> subprocess.Popen[Any]:
        """Starts the program behind the link, a single one; arguments are those of :class:`subprocess.Popen`.

        It finds this machine's address in its environment as ``WHYLOSS_HOST_ADDRESS``.

        Raises:
            FileNotFoundError: there is no such program.
            PermissionError: there is a file of that name, and it may not be run.
            whyloss.InputError: there is a program behind the link already; it can start others.
        """
        if self._namespaces:
            raise _native.InputError(
                "there is a program behind this link already; allowed: one, which can start others"
            )
        if shutil.which(argv[0]) is None:
            if shutil.which(argv[0], os.F_OK) or (os.sep in argv[0] and Path(argv[0]).is_dir()):
                raise PermissionError(f"{argv[0]}: permission denied; allowed: a file that may be executed")
            raise FileNotFoundError(f"{argv[0]}: there is no such program")
        env = {**(kwargs.pop("env", None) or os.environ), "WHYLOSS_HOST_ADDRESS": self.host}
        go, told = os.pipe()
        try:
            child = subprocess.Popen(
                ["unshare", "--net", "--", sys.executable, "-IS", "-c", _WAIT, str(go), *argv],
                env=env,
                pass_fds=(go,),
                **kwargs,
            )
            try:
                self._connect(child)
                os.write(told, b"\n")
            except BaseException:
                child.kill()
                child.wait()
                raise
        finally:
            os.close(go)
            os.close(told)
        return child

    def _connect(self, child: subprocess.Popen[Any]) -> None:
        own, theirs = Path("/proc/self/ns/net").readlink(), Path(f"/proc/{child.pid}/ns/net")
        until = time.monotonic() + _PATIENCE_S
        while theirs.readlink() == own:
            if child.poll() is not None or time.monotonic() > until:
                raise _native.UnavailableError("a network namespace of its own is refused to this user")
            time.sleep(0.002)
        # A namespace ends with its last program, and the device with it; held open, both last as long as the link.
        self._namespaces.append(os.open(theirs, os.O_RDONLY))
        _ip("link", "set", self._theirs, "netns", str(child.pid))
        inside = ("nsenter", f"--net={theirs}", "ip")
        _call(*inside, "link", "set", "lo", "up")
        _call(*inside, "link", "set", "dev", self._theirs, *_UNANNOUNCED)
        _call(*inside, "address", "add", f"{self.guest}/30", "dev", self._theirs)
        _call(*inside, "link", "set", self._theirs, "up")
        _ip("link", "set", self._ours, "up")
        _call(*inside, "route", "add", "default", "via", self.host)

    def run(self, argv: Sequence[str], **kwargs: Any) -> int:
        """Runs a program behind the link to its end and gives its exit status."""
        return self.popen(argv, **kwargs).wait()

    def close(self) -> None:
        """Takes the link away, once what is being closed over it has closed, or two seconds have passed."""
        until = time.monotonic() + _LAST_S
        while self._namespaces and _is_closing(self.guest) and time.monotonic() < until:
            time.sleep(0.02)
        if self._nft is not None:
            assert self._nft.stdin is not None
            with suppress(BrokenPipeError):
                self._nft.stdin.close()
            self._nft.wait()
        self.bridge.close()
        while self._namespaces:
            namespace = self._namespaces.pop()
            subprocess.run(
                ["nsenter", f"--net=/proc/self/fd/{namespace}", "sh", "-c", _GIVE_UP],
                pass_fds=(namespace,),
                capture_output=True,
                check=False,
            )
            os.close(namespace)

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Takes it away."""
        self.close()


def _is_closing(guest: str) -> bool:
    """Whether a connection of this machine with that address waits for the last acknowledgement."""
    address = f"{int.from_bytes(socket.inet_aton(guest), sys.byteorder):08X}"
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path(f"/proc/self/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
                _, _, remote, state, *_ = line.split()
                # An address of IPv4 stands at the end of one of IPv6.
                if state in _CLOSING and remote.partition(":")[0].endswith(address):
                    return True
    return False


def _check() -> None:
    if not sys.platform.startswith("linux"):
        raise _native.UnavailableError("an emulated link needs Linux; `whyloss run` simulates one anywhere")
    if os.geteuid() != 0:
        raise _native.UnavailableError(
            "an emulated link needs root, as in: sudo whyloss link 20ms 10Mbps -- COMMAND; `whyloss run` simulates one "
            "without"
        )
    for tool in _TOOLS:
        if shutil.which(tool) is None:
            raise _native.UnavailableError(f"an emulated link needs the command `{tool}` (iproute2, util-linux)")


def _ip(*arguments: str) -> None:
    _call("ip", *arguments)


def _call(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise _native.UnavailableError(f"{' '.join(argv)}: {done.stderr.strip()}")
