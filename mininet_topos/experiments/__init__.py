"""The published figures, one declarative file each, and what such a file is made of.

flows       what runs: XFTP, plain TCP, background load, the tools of today
spec        a file's parts: scenarios, points, figures, published values, rules
outcome     what one run gives, as it is stored
measures    from an outcome to a number with a unit
table       numbers of all runs: means and their 95% confidence intervals
rules       verdicts: sentences that are computed from a table
registry    finds the files by their names: a1, a2 … f5

Nothing here needs root, Mininet or a running kernel feature: experiments are values.
"""
