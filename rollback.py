"""Every replica back to what ran before its present release. Needs no settings, so it works when they are broken.

pyinfra inventory/prod.py rollback.py --dry                  what each host would go back to
pyinfra inventory/prod.py rollback.py                        all at once; each proves that its server answers again
pyinfra inventory/prod.py rollback.py --data release=ID      back to this release, where it was proven before
"""

from roles import locks, rollback, waves

fleet = rollback.look()

if fleet.busy:
    locks.take(fleet=fleet, what="a rollback")
    rollback.go_back(fleet=fleet)
    waves.verdict(fleet=fleet)
