"""Look at a host once, read-only, and print everything a plan needs as one line of ASCII JSON.

The controller sends these modules joined into one source (joining.py, program.py): `python3 -I -S -c SOURCE REQUEST`,
REQUEST being a JSON object. So they are Python 3.9 and the standard library, and share one set of names. The probe may
not raise, nor take "could not be read" for "is not there": a value that could not be read is `{"unknown": why}`; one
that is not there is null, an empty list or `"exists": false`. observe.py is the typed side of the answer.

It is cheap on purpose: 24 lab hosts share two cores. Measured, in CPU time, and left out for it:
`import json` 7 ms (it imports re), `import subprocess` 9 ms, `import signal` 4 ms, `/proc/net/tcp` 9 ms
(the kernel walks its table of all connections), a second systemctl 2 ms. typing is for type checkers alone.

Never sent: secret files, whole command lines, whole environments.

In the host program the joined source takes this package's place; what is named here is what others take from it.
"""

from .basis import Unreadable
from .models import model

__all__ = ["Unreadable", "model"]
