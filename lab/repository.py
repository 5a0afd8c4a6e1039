"""The lab's signed apt repository: the CUDA 13.0 toolkit with the real compiler, and its keyring package.

It has the shape of NVIDIA's own: flat, a `cuda-keyring_1.1-1_all.deb` beside the packages, and
`cuda-toolkit-13-0` for /usr/local/cuda-13.0. The compiler comes from the wheels NVIDIA publishes.
"""

import gzip
import hashlib
import json
import shutil
import tempfile
import zipfile
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

from . import cache, network, wheels
from .paths import cache_folder
from .tools import call

HOME = "usr/local/cuda-13.0"
VERSION = "13.0.2"
KEYRING = "usr/share/keyrings/cuda-archive-keyring.gpg"
URL = f"http://{network.CONTROLLER}:{network.PORT}/cuda/debian12/x86_64/"
LIST = f"deb [signed-by=/{KEYRING}] {URL} /\n"

# libnvvm is for programs that compile at run time; nvcc has cicc. 60 MB less for every host to unpack.
LEFT_OUT = ("libnvvm.so", "/cmake/", "/.metadata/")

# Read once: a running server goes on serving what it was started with while this file is edited.
RECIPE = "\0".join([*wheels.CUDA, Path(__file__).read_text()])


def folder() -> Path:
    """Where the repository is, or will be."""
    return cache.folder_of("repository", RECIPE)


def ensure() -> Path:
    """The repository's folder; built (some 15 s, 220 MB) when the recipe is a new one."""
    return cache.ensure("repository", RECIPE, _build)


def _build(building: Path) -> Path:
    print("building the CUDA packages, once: some 15 seconds", flush=True)
    parts = wheels.download(wheels.CUDA, into=cache_folder() / "downloads")
    # The key's home is in the machine's own temp folder, because gpg-agent's socket needs a short path.
    with tempfile.TemporaryDirectory(prefix="lab-") as home:
        try:
            debs = [_keyring(building, _make_key(home)), _toolkit(building, parts)]
            made = building / "repository"
            made.mkdir()
            for deb in debs:
                shutil.move(deb, made)
            _index(made, home)
        finally:
            call(["gpgconf", "--homedir", home, "--kill", "all"])
    return made


def _gpg(home: str) -> list[str]:
    return ["gpg", "--homedir", home, "--batch", "--yes", "--pinentry-mode=loopback", "--passphrase="]


def _make_key(home: str) -> bytes:
    """Make the signing key; only its public half outlives the build."""
    call([*_gpg(home), "--quick-generate-key", "sglang-fleet lab (stand-in)", "rsa3072", "sign", "never"])
    call([*_gpg(home), "--export", "--output", f"{home}/public.gpg"])
    return Path(home, "public.gpg").read_bytes()


def _deb(building: Path, tree: Path, fields: dict[str, str]) -> Path:
    """Pack a folder. Not compressed: several hosts unpack it at once on few cores."""
    size = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file()) // 1024
    fields |= {"Maintainer": "sglang-fleet lab <lab@localhost>", "Installed-Size": str(size)}
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN" / "control").write_text("".join(f"{key}: {value}\n" for key, value in fields.items()))
    name = f"{fields['Package']}_{fields['Version']}_{fields['Architecture']}.deb"
    call(["dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, building / name])
    return building / name


def _keyring(building: Path, public: bytes) -> Path:
    tree = building / "keyring"
    files = {KEYRING: public, "etc/apt/sources.list.d/cuda-debian12-x86_64.list": LIST.encode()}
    for path, content in files.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(content)
    fields = {
        "Package": "cuda-keyring",
        "Version": "1.1-1",
        "Architecture": "all",
        "Description": "the lab's stand-in for NVIDIA's repository key",
    }
    return _deb(building, tree, fields)


def _toolkit(building: Path, parts: list[Path]) -> Path:
    """Lay the wheels out as NVIDIA's packages are. Wheels carry no executable bits, and call lib64 `lib`."""
    home = building / "toolkit" / HOME
    for part in parts:
        with zipfile.ZipFile(part) as archive:
            for entry in archive.infolist():
                inner = entry.filename.removeprefix("nvidia/cu13/")
                if inner == entry.filename or entry.is_dir() or any(word in f"/{inner}" for word in LEFT_OUT):
                    continue
                target = home / (f"lib64{inner.removeprefix('lib')}" if inner.startswith("lib/") else inner)
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as source, target.open("wb") as destination:
                    shutil.copyfileobj(source, destination, 1 << 20)
                target.chmod(0o755 if "bin" in target.parent.relative_to(home).parts else 0o644)
    (home / "lib64" / "libcudart.so").symlink_to("libcudart.so.13")
    components = {
        "cuda": {"name": "CUDA SDK", "version": VERSION},
        "cuda_nvcc": {"name": "CUDA NVCC", "version": "13.0.88"},
        "cuda_cudart": {"name": "CUDA Runtime (cudart)", "version": "13.0.96"},
        "cuda_cccl": {"name": "CUDA C++ Core Compute Libraries", "version": "13.0.85"},
    }
    (home / "version.json").write_text(json.dumps(components, indent=3) + "\n")
    fields = {
        "Package": "cuda-toolkit-13-0",
        "Version": f"{VERSION}-1",
        "Architecture": "amd64",
        "Description": "the compiler of CUDA 13.0, from NVIDIA's wheels, for the lab",
    }
    return _deb(building, building / "toolkit", fields)


def _index(made: Path, home: str) -> None:
    """Write Packages, Release and InRelease."""
    stanzas = []
    for deb in sorted(made.glob("*.deb")):
        with deb.open("rb") as handle:
            digest = hashlib.file_digest(handle, "sha256").hexdigest()
        control = call(["dpkg-deb", "--field", deb]).strip()
        stanzas.append(f"{control}\nFilename: ./{deb.name}\nSize: {deb.stat().st_size}\nSHA256: {digest}\n")
    packages = "\n".join(stanzas).encode()
    indexes = {"Packages": packages, "Packages.gz": gzip.compress(packages, mtime=0)}
    for name, content in indexes.items():
        (made / name).write_bytes(content)
    sums = "".join(
        f" {hashlib.sha256(content).hexdigest()} {len(content)} {name}\n" for name, content in indexes.items()
    )
    date = format_datetime(datetime.now(tz=UTC), usegmt=True)
    (made / "Release").write_text(
        f"Origin: sglang-fleet lab\nLabel: CUDA stand-in\nArchitectures: amd64\nDate: {date}\nSHA256:\n{sums}"
    )
    call([*_gpg(home), "--clearsign", "--output", made / "InRelease", made / "Release"])
    call([*_gpg(home), "--detach-sign", "--armor", "--output", made / "Release.gpg", made / "Release"])
