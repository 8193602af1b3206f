"""The lab: emulated satellite links, the texts' topologies, and the published figures rerun."""
