"""Mininet, imported without its deprecation warnings: it uses distutils, which still works.

Its own start, which `mn` would run too, is left out: it raises a dozen sysctls of the host and
leaves them so.
"""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from mininet.link import Intf, Link, TCIntf
    from mininet.net import Mininet
    from mininet.node import Node
    from mininet.topo import Topo

Mininet.inited = True

__all__ = ["Intf", "Link", "Mininet", "Node", "TCIntf", "Topo"]
