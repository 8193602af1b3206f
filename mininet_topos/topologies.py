"""The topologies by name, for the lab and for `mn`.

By hand, with neither controller nor switch:

    sudo mn --custom mininet_topos/topologies.py --topo acts_t1
    sudo mn --custom mininet_topos/topologies.py --topo hts_geo,loss=0.001,rtt_s=0.5

`mn` executes this file and takes every name in it, so there are few.
"""

try:
    import mininet_topos.topology.catalogue
except ImportError:
    # `mn` may be Debian's, whose Python knows neither this project nor what it needs.
    def _find_project(here: str) -> None:
        import sys
        from pathlib import Path

        project = Path(here).resolve().parent.parent
        sys.path += [str(project), *map(str, project.glob(".venv/lib/python3*/site-packages"))]

    _find_project((lambda: None).__code__.co_filename)
    import mininet_topos.topology.catalogue

topos = mininet_topos.topology.catalogue.TOPOLOGIES


def cleanup() -> None:
    """Replace what `mn` runs after a failure: it kills programs of the whole host by name, other
    labs' too, and empties /tmp. What `mn` started ends with it, without help.
    """
