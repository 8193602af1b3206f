"""Names for the hosts of a lab, in an /etc/hosts that only the lab's own processes see."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mininet_topos.errors import TopologyError
from mininet_topos.topology.nodes import LabNode

if TYPE_CHECKING:
    from mininet_topos.lifecycle import ProcessTree

TIMEOUT_S = 20.0

_MOUNT = """
mount -t tmpfs -o size=64k,mode=755 xftp-lab /tmp
cat > /tmp/hosts
chmod 644 /tmp/hosts
mount --bind /tmp/hosts /etc/hosts
umount -l /tmp
"""
"""Run in a node's private mount namespace: the file is in memory, and ends with the namespace."""


def give_names(nodes: Sequence[LabNode], tree: ProcessTree) -> None:
    """Make the names of all nodes resolve on each of them. Raises TopologyError."""
    started = []
    try:
        for node in nodes:
            # The machine's own name is that of every host, so it leads to the host itself.
            lines = ["127.0.0.1 localhost", f"{node.IP()} {node.name} {platform.node()}"]
            lines += [f"{other.IP()} {other.name}" for other in nodes if other is not node]
            process = tree.popen(
                ["mnexec", "-a", str(node.pid), "sh", "-ec", _MOUNT],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            started.append((node.name, process, "\n".join(lines) + "\n"))
        for name, process, text in started:
            output, _ = process.communicate(text, TIMEOUT_S)
            if process.returncode != 0:
                raise TopologyError(
                    f"{name} cannot have an /etc/hosts of its own: {output.strip()}"
                )
    except subprocess.TimeoutExpired as error:
        raise TopologyError(f"mounting a host's /etc/hosts took {TIMEOUT_S:g} s") from error
    finally:
        for _, process, _ in started:
            with process:
                process.kill()
