"""Parts of topologies: nodes, wires, emulated links, and the base that addresses and routes."""
