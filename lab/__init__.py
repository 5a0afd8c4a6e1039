"""Real systemd hosts on one Linux machine, for the demo and the tests.

`Lab` is one running lab, `Host` one of its hosts. Everything in this package is a stand-in for real machines:
nothing under src/ or roles/ may import it.
"""

from .errors import LabError
from .fleet import Lab
from .host import Host

__all__ = ["Host", "Lab", "LabError"]
