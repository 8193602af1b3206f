"""Hosts and routers: a shell in a network and mount namespace of its own, set up by netlink."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from mininet_topos.errors import MissingToolError, TopologyError
from mininet_topos.namespaces import netlink, require_root, write_sysctls
from mininet_topos.topology.mininet_parts import Node

if TYPE_CHECKING:
    from mininet_topos.lifecycle import ProcessTree


@dataclass(frozen=True, slots=True)
class Route:
    """Where a node sends packets that are not for a neighbour."""

    destination: str
    """A prefix, or "default"."""

    gateway: str
    """Address of the next router."""


class LabNode(Node):  # type: ignore[misc] # Mininet has no types
    """A host. Mininet's `ifconfig` is not needed: addresses and routes are set by netlink."""

    forwards = False

    shell: subprocess.Popen[bytes] | None
    stdin: IO[str] | None
    master: int | None
    slave: int | None

    def __init__(
        self,
        name: str,
        *,
        tree: ProcessTree | None = None,
        routes: tuple[Route, ...] = (),
        **params: Any,
    ) -> None:
        """Start the node's shell.

        tree: the lab that it is part of; None: it is Mininet's own, as with `mn --custom`.
        Raises MissingToolError without mnexec, TopologyError if the namespace cannot be made.
        """
        self.tree = tree
        self.routes = routes
        super().__init__(name, **params)
        try:
            self._prepare()
        except BaseException:
            self.terminate()
            raise

    @classmethod
    def setup(cls) -> None:
        """Check for root and mnexec; Mininet's own checks end the program."""
        require_root()
        require_mnexec()

    def startShell(self, mnopts: str | None = None) -> None:
        """Start the shell that holds the namespaces."""
        try:
            super().startShell(mnopts)
        except (OSError, IndexError) as error:  # IndexError: it ended without its prompt
            self._abandon_shell()
            raise TopologyError(f"the namespace of {self.name} cannot be made: {error}") from error
        except BaseException:
            self._abandon_shell()
            raise

    def _abandon_shell(self) -> None:
        """Close what a start that was cut short has opened."""
        if self.shell is not None:
            self.shell.kill()
            self.shell.wait()
            self.shell = None
        if self.stdin is not None:
            self.stdin.close()
        elif self.master is not None:
            os.close(self.master)
        if self.slave is not None:
            os.close(self.slave)
        self.master = self.slave = self.stdin = None

    def _popen(self, cmd: list[str], **params: Any) -> subprocess.Popen[Any]:
        if self.tree is None:
            return subprocess.Popen(cmd, **params)
        # `mn -c` kills every process that has "mininet:" in its command line.
        cmd = [word.replace("mininet:", "xftp-lab:") for word in cmd]
        return self.tree.popen(cmd, **params)

    def _prepare(self) -> None:
        """Set what must be so before the first interface: no IPv6 chatter, loopback up."""
        settings = {"net.ipv4.ip_forward": "1" if self.forwards else "0"}
        if os.path.exists("/proc/sys/net/ipv6"):
            # Router solicitations and duplicate address detection would cross the links.
            settings["net.ipv6.conf.all.disable_ipv6"] = "1"
            settings["net.ipv6.conf.default.disable_ipv6"] = "1"
        write_sysctls(self.pid, settings)
        with netlink(self.pid, f"the loopback of {self.name}") as kernel:
            kernel.link("set", index=1, state="up")  # lo is always the first

    def config(self, **_params: Any) -> dict[str, Any]:
        """Add the routes; the links have set the addresses."""
        with netlink(self.pid, f"the routes of {self.name}") as kernel:
            for route in self.routes:
                kernel.route("replace", dst=route.destination, gateway=route.gateway)
        return {}

    def terminate(self) -> None:
        """End the shell, and with it the namespaces, and wait for it."""
        if self.shell is None:
            return
        if self.shell.poll() is None:
            self.shell.kill()
        # Mininet has one pseudo-terminal under both names, and keeps the node by its number.
        number = self.stdout.fileno()
        self.outToNode.pop(number, None)
        self.inToNode.pop(number, None)
        self.cleanup()


class Router(LabNode):
    """A node that forwards."""

    forwards = True


def require_mnexec() -> None:
    """Raise MissingToolError unless Mininet's helper program is installed."""
    if shutil.which("mnexec") is None:
        raise MissingToolError(
            "mnexec is not installed: apt-get install --no-install-recommends mininet"
        )
