"""What every host has over the bare root file system: keys, settings, the stand-in nvidia-smi, models.

Kept in the cache under the hash of what is in it, and used as an overlay's middle layer: changing one of
these files costs nothing, while the root file system below stays.
"""

from pathlib import Path

from . import cache, models, tree
from .paths import cache_folder
from .real import model as real_model
from .tools import call

OPERATOR = 1000

JOURNAL = """\
# Nothing a service says may be dropped: tests read it.
[Journal]
Storage=volatile
RateLimitIntervalSec=0
RuntimeMaxUse=64M
"""
SSHD = """\
PermitRootLogin prohibit-password
PasswordAuthentication no
UseDNS no
# A test may open many connections at once.
MaxStartups 100:30:200
MaxSessions 100
PrintMotd no
# Says when a session starts: tests count a run's sessions.
LogLevel VERBOSE
"""
GPUS = """\
index,uuid,name,pci.bus_id,memory.total,memory.used,power.draw,power.limit,utilization.gpu,temperature.gpu,\
clocks.current.sm,pcie.link.gen.current,pcie.link.width.current,compute_cap
"""


def gpus(count: int = 8) -> str:
    """The default inventory: RTX PRO 6000 Blackwell, idle. Header first, no space after a comma."""
    rows = (
        f"{index},GPU-{index:08x}-77aa-4bcd-8e21-0123456789ab,NVIDIA RTX PRO 6000 Blackwell Server Edition,"
        f"00000000:{0x10 + index:02X}:00.0,97887,4,31.25,600.00,0,33,180,5,16,12.0\n"
        for index in range(count)
    )
    return GPUS + "".join(rows)


def keys() -> Path:
    """The folder with the lab's key pair (`id_ed25519`) and the hosts' own (`host_ed25519`)."""
    folder = cache_folder() / "ssh"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in ("id_ed25519", "host_ed25519"):
        if not (folder / f"{name}.pub").exists():
            (folder / name).unlink(missing_ok=True)
            call(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "sglang-fleet lab", "-f", folder / name])
    return folder


def _contents() -> dict[str, tuple[bytes, int, int]]:
    """Path on the host → content, mode, owner."""
    pair = keys()
    login = (pair / "id_ed25519.pub").read_bytes()
    program = (Path(__file__).parent / "standins" / "nvidia_smi").read_bytes()
    plain = {
        "/etc/systemd/journald.conf.d/lab.conf": JOURNAL.encode(),
        "/etc/ssh/sshd_config.d/lab.conf": SSHD.encode(),
        "/etc/ssh/ssh_host_ed25519_key.pub": (pair / "host_ed25519.pub").read_bytes(),
        "/etc/resolv.conf": b"# a lab host asks nobody\n",
        "/etc/lab-nvidia-smi/gpus.csv": gpus().encode(),
        "/etc/lab-nvidia-smi/compute.csv": b"pid,used_memory,gpu_uuid,process_name\n",
        "/etc/lab-nvidia-smi/driver": b"580.95.05\n",
    }
    contents = {path: (content, 0o644, 0) for path, content in plain.items()}
    contents["/etc/ssh/ssh_host_ed25519_key"] = ((pair / "host_ed25519").read_bytes(), 0o600, 0)
    contents["/root/.ssh/authorized_keys"] = (login, 0o600, 0)
    contents["/home/operator/.ssh/authorized_keys"] = (login, 0o600, OPERATOR)
    contents["/usr/bin/nvidia-smi"] = (program, 0o755, 0)
    folders = {
        "/root/models/Kimi-K2.6": models.files(),
        "/srv/models/tiny": models.files(),
        "/srv/models/real-tiny": real_model.files(),
    }
    for folder, files in folders.items():
        contents |= {f"{folder}/{name}": (content, 0o644, 0) for name, content in files.items()}
    return contents


def ensure(rootfs: Path) -> Path:
    """The layer's folder; written when its content is new."""
    contents = _contents()

    def make(building: Path) -> Path:
        layer = building / "layer"
        layer.mkdir(mode=0o755)
        for path, (content, mode, owner) in contents.items():
            tree.write(path, content, over=rootfs, into=layer, mode=mode, owner=owner)
        return layer

    return cache.ensure("layers", f"{rootfs.name}{sorted(contents.items())}", make)
