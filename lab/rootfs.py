"""The hosts' root file system: one for all, built once, never written to afterwards.

It is the machine's own distribution and comes from the machine's own apt sources, of which only the entries
for the distribution itself are used: no file here names a mirror. It is kept under the hash of its recipe.
"""

import re
from pathlib import Path

from . import cache
from .errors import LabError
from .tools import call

PACKAGES = (
    "systemd,systemd-sysv,dbus,openssh-server,sudo,python3,ca-certificates,curl,iproute2,procps,"
    "g++,"  # nvcc hands the host's half of every source to it
    "libpython3-dev"  # and triton compiles against Python's headers
)

# What each host would otherwise do on its own, with 24 of them on two cores, and none of it of use here.
MASKED = (
    "apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer "
    "motd-news.timer systemd-ask-password-console.path systemd-ask-password-wall.path "
    "console-getty.service e2scrub_reap.service systemd-pcrphase.service"
)

# Real hosts have the group `render` from udev, which no container needs. Debian has a group `operator`.
CUSTOMIZE = f"""
set -e
chroot "$1" groupadd --system --force render
chroot "$1" groupadd --system --force video
chroot "$1" groupadd --system --force operator
chroot "$1" useradd --create-home --shell /bin/bash --uid 1000 --gid operator operator
echo 'operator ALL=(ALL:ALL) NOPASSWD: ALL' > "$1/etc/sudoers.d/operator"
chmod 0440 "$1/etc/sudoers.d/operator"
sed -i 's/^hosts:.*/hosts: files/' "$1/etc/nsswitch.conf"
chroot "$1" systemctl mask {MASKED}
chroot "$1" systemctl enable systemd-networkd.service ssh.service
chroot "$1" systemctl disable ssh.socket systemd-networkd-wait-online.service 2>/dev/null || true
rm -f "$1"/etc/apt/sources.list "$1"/etc/apt/sources.list.d/* "$1"/etc/ssh/ssh_host_* "$1"/etc/resolv.conf
rm -f "$1"/etc/machine-id "$1"/etc/hostname
rm -rf "$1"/usr/share/doc/* "$1"/usr/share/locale/* "$1"/usr/share/man/*
"""


def codename() -> str:
    """The machine's release, such as `bookworm`, which the hosts share."""
    found = re.search(r'^VERSION_CODENAME="?([a-z]+)', Path("/etc/os-release").read_text(), re.MULTILINE)
    if not found:
        raise LabError("/etc/os-release names no VERSION_CODENAME: the lab works on Debian and Ubuntu")
    return found[1]


def own_sources(folder: Path = Path("/etc/apt")) -> list[Path]:
    """The machine's apt sources that are of the distribution itself, in both of apt's formats."""
    suite = re.compile(rf"^(?:Suites:\s*|deb\s(?:\[[^]]*\]\s*)?\S+\s+){codename()}\b", re.MULTILINE)
    candidates = [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]
    found = [
        path
        for path in candidates
        if path.suffix in {".list", ".sources"} and path.is_file() and suite.search(path.read_text())
    ]
    if not found:
        raise LabError(f"no apt source in {folder} is for {codename()}: there is nothing to build hosts from")
    return found


def ensure() -> Path:
    """The root file system's folder; built (half a minute, 500 MB) when the recipe is a new one."""
    sources = own_sources()

    def make(building: Path) -> Path:
        print("building the hosts' root file system, once: half a minute", flush=True)
        command = ["mmdebstrap", "--quiet", "--variant=apt", f"--include={PACKAGES}"]
        call([*command, f"--customize-hook={CUSTOMIZE}", codename(), building / "root", *sources])
        return building / "root"

    recipe = "\0".join([PACKAGES, CUSTOMIZE, codename(), *(path.read_text() for path in sources)])
    return cache.ensure("rootfs", recipe, make)
