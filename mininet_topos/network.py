"""A running topology: hosts to start programs in, links to ask, and an end that leaves nothing."""

from __future__ import annotations

import asyncio
import itertools
import os
import platform
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from mininet_topos.emulator.link import EmulatedLink
from mininet_topos.errors import EmulatorError, LabError, TopologyError
from mininet_topos.host_names import give_names
from mininet_topos.lifecycle import Claim, ProcessTree, clean_leftovers, undisturbed
from mininet_topos.namespaces import read_sysctls, require_root
from mininet_topos.tcp_settings import TcpSettings
from mininet_topos.topology.base import LabTopo
from mininet_topos.topology.links import LabLink, SatelliteLink, require_tun
from mininet_topos.topology.mininet_parts import Mininet
from mininet_topos.topology.nodes import LabNode, require_mnexec

_numbers = itertools.count(1)


def _require_no_loop() -> None:
    """Raise TopologyError where pyroute2, which runs a loop of its own, could not work."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise TopologyError("a lab starts in a thread without a running asyncio loop: to_thread()")


class Host:
    """A host of a running lab."""

    def __init__(self, node: LabNode, tree: ProcessTree) -> None:
        self._node = node
        self._tree = tree

    @property
    def name(self) -> str:
        """Give its name, which its own and the other hosts' /etc/hosts know."""
        return str(self._node.name)

    @property
    def ip(self) -> str:
        """Give the address of its first link."""
        return str(self._node.IP())

    @property
    def pid(self) -> int:
        """Give a process in its namespaces, which lives as long as the lab."""
        return int(self._node.pid)

    def popen(
        self, argv: list[str], *, env: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[Any]:
        """Start a program on the host, in a session of its own; its pid is the caller's to signal.

        env: its environment, the caller's if None; GLOBUS_HOSTNAME is added, as GridFTP wants it.
        Everything that is still running when the lab ends is killed.
        """
        options.setdefault("start_new_session", True)
        environment = {"GLOBUS_HOSTNAME": self.name, **(os.environ if env is None else env)}
        command = ["mnexec", "-a", str(self.pid), *argv]
        return self._tree.popen(command, env=environment, **options)

    def run(
        self, argv: list[str], timeout: float, **options: Any
    ) -> subprocess.CompletedProcess[Any]:
        """Run a program on the host and wait for it.

        Output is captured as text unless options say otherwise. Raises subprocess.TimeoutExpired,
        after it was killed.
        """
        options = {"text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        told = options.pop("input", None)
        if told is not None:
            options["stdin"] = subprocess.PIPE
        else:
            options.setdefault("stdin", subprocess.DEVNULL)
        with self.popen(argv, **options) as process:
            try:
                output, errors = process.communicate(told, timeout)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(argv, process.returncode, output, errors)


class _Network(Mininet):  # type: ignore[misc] # Mininet has no types
    """Mininet's network, whose nodes and emulators are processes of the lab."""

    def __init__(self, topology: LabTopo, tree: ProcessTree) -> None:
        self.tree = tree
        super().__init__(topology, controller=None, build=False)

    def addHost(self, name: str, cls: Any = None, **params: Any) -> LabNode:
        node: LabNode = super().addHost(name, cls=cls, tree=self.tree, **params)
        return node


class Lab:
    """A topology that runs while the block does.

        with Lab(ActsT1(queue=40), tcp=nineties(sack=True)) as lab:
            lab.host("server").popen(["xftpd", ...])
            lab.links["satellite"].counters()

    Use it from a thread without a running asyncio loop. Labs may run side by side, also of the
    same topology and in the same process.
    """

    def __init__(
        self,
        topology: LabTopo,
        *,
        tcp: TcpSettings | None = None,
        host_tcp: Mapping[str, TcpSettings] | None = None,
        name: str | None = None,
    ) -> None:
        """Plan the lab; nothing happens before `start`.

        tcp: of all hosts; host_tcp: of single hosts, instead; name: one that no other running lab
        has, made up if None. Raises TopologyError for hosts that are not there.
        """
        self.topology = topology
        self.name = name or f"{type(topology).__name__}-{os.getpid()}-{next(_numbers)}"
        unknown = sorted(set(host_tcp or {}) - set(topology.host_names))
        if unknown:
            raise TopologyError(f"{type(topology).__name__} has no host {', '.join(unknown)}")
        self.tcp = {
            host: (host_tcp or {}).get(host, tcp or TcpSettings()) for host in topology.host_names
        }
        self.links: dict[str, EmulatedLink] = {}
        self._claim: Claim | None = None
        self._tree: ProcessTree | None = None
        self._network: _Network | None = None

    def start(self) -> Lab:
        """Build everything; on any failure, Ctrl-C included, nothing is left.

        Raises MissingToolError for what this machine lacks, TopologyError or EmulatorError for what
        cannot be as asked.
        """
        if self._tree is not None:
            raise TopologyError(f"the lab {self.name!r} is running already")
        _require_no_loop()
        require_root()
        require_mnexec()
        require_tun()
        clean_leftovers()
        try:
            self._claim = Claim(self.name)
            self._tree = ProcessTree(self.name)
            self._network = _Network(self.topology, self._tree)
            self._network.build()
            for link in self._network.links:
                if isinstance(link, SatelliteLink):
                    self.links[link.label] = link.emulated
            for host, settings in self.tcp.items():
                settings.apply(self._node(host).pid)
            give_names([self._node(name) for name in self.topology.host_names], self._tree)
        except BaseException as error:
            try:
                self.stop()
            except LabError as failed:
                error.add_note(str(failed))  # What went wrong first says more.
            raise
        return self

    def stop(self) -> None:
        """End every process of the lab, and with them namespaces and interfaces; again: nothing."""
        with undisturbed():
            failed = self._stop_links()
            tree, network, claim = self._tree, self._network, self._claim
            self._tree = self._network = self._claim = None
            with ExitStack() as ending:  # each of them, last first, also where another fails
                if claim is not None:
                    ending.callback(claim.release)
                if network is not None:
                    for node in network.hosts:
                        ending.callback(node.terminate)
                if tree is not None:
                    ending.callback(tree.kill)
        if failed is not None:
            raise failed

    def _stop_links(self) -> EmulatorError | None:
        """Stop the emulators, so that their last counters can be read; give the first failure."""
        failed = None
        for link in self._network.links if self._network is not None else ():
            if isinstance(link, SatelliteLink):
                try:
                    link.emulated.stop()
                except EmulatorError as error:
                    failed = failed or error
        return failed

    @property
    def keeper_pid(self) -> int | None:
        """Give the process with which all others of the lab end; None: it is not running."""
        return None if self._tree is None else self._tree.pid

    def host(self, name: str) -> Host:
        """Give a host, or a router, by its name. Raises TopologyError."""
        if self._tree is None:
            raise TopologyError(f"the lab {self.name!r} is not running")
        return Host(self._node(name), self._tree)

    def _node(self, name: str) -> LabNode:
        if self._network is None:
            raise TopologyError(f"the lab {self.name!r} is not running")
        try:
            node: LabNode = self._network.nameToNode[name]
        except KeyError as error:
            known = ", ".join(sorted(self._network.nameToNode))
            raise TopologyError(f"there is no node {name!r}, only {known}") from error
        return node

    def describe(self) -> dict[str, Any]:
        """Give what a result must say of the lab, in values that JSON can hold."""
        if self._network is None:
            raise TopologyError(f"the lab {self.name!r} is not running")
        links: list[LabLink] = self._network.links
        return {
            "name": self.name,
            "topology": type(self.topology).__name__,
            "source": self.topology.source,
            "parameters": {key: str(value) for key, value in self.topology.parameters.items()},
            "kernel": platform.release(),
            "hosts": {name: self._describe_host(name) for name in self.topology.host_names},
            "links": [link.describe() for link in links],
        }

    def _describe_host(self, name: str) -> dict[str, Any]:
        node, settings = self._node(name), self.tcp[name]
        return {
            "address": node.IP(),
            "tcp": settings.to_json(),
            "sysctls": read_sysctls(node.pid, tuple(settings.sysctls())),
            "route_attributes": settings.route_metrics(),
            "deviations": list(settings.deviations()),
        }

    def __enter__(self) -> Lab:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        except EmulatorError as failed:
            # What ended the block says more than the emulator that ended with it.
            if error is None:
                raise
            error.add_note(str(failed))
