"""What every parser of a peer's bytes has to keep to, shown by hypothesis here and by atheris.

`targets.py` has each property once, as a function of bytes: `test_targets.py` runs it with what
hypothesis makes up, `python -m tests.fuzz` with what libFuzzer finds by coverage (`make fuzz`).
"""
