"""XFTP beside other file transfer programs, on loopback: `python -m bench`."""
