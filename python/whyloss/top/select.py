"""Which connections are shown."""

from __future__ import annotations

import os
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whyloss._native import Connection

__all__ = ["Selection", "cgroup_path"]


@dataclass(frozen=True)
class Selection:
    """What a connection must be to be shown; what is not set admits all."""

    ports: frozenset[int] = frozenset()
    prefixes: tuple[IPv4Network | IPv6Network, ...] = ()
    cgroup: str | None = None
    controls: frozenset[str] = frozenset()

    def admits(self, connection: Connection) -> bool:
        """Whether it is shown. A port or a prefix may be that of either end; a group includes those below it."""
        if self.ports and not self.ports & {connection["local_port"], connection["remote_port"]}:
            return False
        if self.controls and connection["control"] not in self.controls:
            return False
        if self.cgroup is not None and not f"{connection['cgroup']}/".startswith(f"{self.cgroup.rstrip('/')}/"):
            return False
        ends = (connection["local"], connection["remote"])
        return not self.prefixes or any(ip_address(end) in prefix for prefix in self.prefixes for end in ends)


def cgroup_path(given: str, mounts: str | None = None) -> str:
    """The path from the root of version 2's hierarchy of the group that ``given`` means: a folder, or such a path.

    Raises:
        ValueError: there is no such group.
    """
    text = Path("/proc/self/mounts").read_text() if mounts is None else mounts
    roots = [Path(fields[1]) for fields in map(str.split, text.splitlines()) if fields[2:3] == ["cgroup2"]]
    if not roots:
        raise ValueError("no control groups of version 2 are mounted")
    root = roots[0]
    for candidate in (Path(given), root / given.lstrip("/")):
        folder = Path(os.path.normpath(candidate))
        if folder.is_relative_to(root) and folder.is_dir():
            return f"/{folder.relative_to(root)}".replace("/.", "/")
    raise ValueError(f"there is no control group `{given}` of version 2; a folder below {root} is allowed")
