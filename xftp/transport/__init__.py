"""The data path that server and client share: N connections on one side, one file on the other.

`channels` opens or accepts the data connections, `sender` and `receiver` move records, `plain`
moves an unframed stream, `files` holds the file's side, `report` tells what happened.
"""
