"""The main job: bring every host to the release the settings describe, or leave it as it was.

pyinfra inventory/prod.py deploy.py --dry --diff     what would change, and why
pyinfra inventory/prod.py deploy.py                  roll it out, wave by wave
"""

from pyinfra import host

from roles import cuda, locks, preflight, service, sglang, waves

fleet = preflight.look()

if fleet.busy:
    locks.take(fleet=fleet, what="a rollout")

for wave in host.loop(fleet.waves):
    if fleet.works_in(host.name, wave):
        cuda.install(fleet=fleet, wave=wave)
        sglang.install(fleet=fleet, wave=wave)
        service.prepare(fleet=fleet, wave=wave)
        service.activate(fleet=fleet, wave=wave)
    waves.close(fleet=fleet, wave=wave)

if fleet.busy:
    service.settle(fleet=fleet)
    service.prune(fleet=fleet)
    waves.verdict(fleet=fleet)
