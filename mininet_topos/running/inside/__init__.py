"""Programs of ours that run in a topology's hosts: `python -m mininet_topos.running.inside.NAME`.

Each says `ready` on a line of standard output once it is, and a JSON object on its last line.
SIGTERM ends it with what it has so far.
"""
