"""The worst request of each API: how it is made, and what it does to everybody else."""
