"""Scenarios on real stacks: real packets over emulated links, carried by the kernel's TCP or by the engine.

A scenario says what is sent over which network; whether the network is simulated or emulated, and whose TCP carries the
data, is chosen when it is run. Real runs take as long as the scenario says and are not repeatable to the packet; the
errors of the links are, because they follow from seed and run as in the simulator.
"""

from whyloss.stacks.batch import Job, run_jobs
from whyloss.stacks.measure import STACKS, Glance, MeasuredRun, measure

__all__ = ["STACKS", "Glance", "Job", "MeasuredRun", "measure", "run_jobs"]
