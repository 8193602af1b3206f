"""The client library: a session with one server, its transfers, its directories."""
