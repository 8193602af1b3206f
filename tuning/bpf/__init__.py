"""Congestion-control algorithms as BPF programs, and what puts them into the kernel.

One C file per algorithm, built by `make bpf` into `objects/`; `tuning.congestion` is the way in.
"""
