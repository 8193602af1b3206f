"""The link emulator: pure stages, one process per link, and its handle `link.EmulatedLink`."""
