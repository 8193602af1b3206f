"""Certificates for the tests, as files and in contexts."""

from __future__ import annotations

import ssl
from functools import cache
from pathlib import Path

import trustme

HOST = "127.0.0.1"


@cache
def authority() -> trustme.CA:
    return trustme.CA()


@cache
def certificate() -> trustme.LeafCert:
    return authority().issue_cert(HOST, "localhost")


def client_context(newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
    """Make what a client has that trusts `authority`."""
    context = ssl.create_default_context()
    context.maximum_version = newest
    authority().configure_trust(context)
    return context


def write_certificate(directory: Path, leaf: trustme.LeafCert | None = None) -> tuple[Path, Path]:
    """Give the files of a certificate and of its key."""
    leaf = leaf or certificate()
    chain, key = directory / "cert.pem", directory / "key.pem"
    chain.write_bytes(b"".join(each.bytes() for each in leaf.cert_chain_pems))
    leaf.private_key_pem.write_to_path(str(key))
    return chain, key


def write_authority(directory: Path) -> Path:
    """Give the file of what clients are to trust."""
    path = directory / "ca.pem"
    authority().cert_pem.write_to_path(str(path))
    return path
