"""XFTP measured: `python -m bench` beside other programs on loopback, `python -m bench.knobs` on a
long path."""
