"""Settings for all tests: one thread, no window, and hypothesis draws the same examples on every run."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("TQDM_DISABLE", "1")

from hypothesis import Phase, settings

PHASES = [Phase.explicit, Phase.generate, Phase.shrink]  # no `explain`: it is slow
settings.register_profile("project", derandomize=True, deadline=None, database=None, max_examples=50, phases=PHASES)
settings.load_profile("project")
