"""Multi-task Bayesian optimisation that can be read, run and trusted."""

__version__ = "0.1.0"

# Kept by hand, in the order of the chapters; a module imports only from modules above it.
from .kernels import *
from .regression import *
from .concentration import *
from .scalarization import *
from .mtkb import *
from .mtbkb import *
from .icm import *
from .correlation import *
from .scaling import *
from .safe import *
from .problems import *
from .baselines import *
from .experiments import *
from .figures import *
from .safe_benchmark import *
