"""`make demo-real`: SGLang itself on a systemd host of this machine, deployed, broken, kept, and upgraded."""

import json
import secrets
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import Lab, LabError
from lab.demo import REPOSITORY, UNKNOWN_FLAG, pyinfra, tell

REAL = Path(__file__).parent / "real"
SERVICE = "tiny"
PORT = 30001
NO_SUCH_FLAG = UNKNOWN_FLAG.replace("k26", SERVICE)
QUESTION = {"text": "w3 w4 w5", "sampling_params": {"max_new_tokens": 8, "temperature": 0}}


@dataclass(frozen=True)
class Operator:
    """Somebody with a deployment folder for a lab, and the key of its servers."""

    lab: Lab
    folder: Path
    api_key: str

    def prepare(self) -> None:
        """Lay the folder out: h1 has the older release in a file of its own."""
        for name in ("deploy.py", "rollback.py", "roles", "templates", "locks"):
            (self.folder / name).symlink_to(REPOSITORY / name)
        for source, place in {
            REPOSITORY / "inventory" / "lab.py": "inventory/lab.py",
            REAL / "settings.yml": "group_vars/all.yml",
            REAL / "older.yml": "host_vars/h1.yml",
        }.items():
            (self.folder / place).parent.mkdir()
            shutil.copyfile(source, self.folder / place)

    def pyinfra(self, *words: str, expect: int = 0) -> None:
        """Run pyinfra in sight. Raises LabError when it ends with another exit status than the story expects."""
        environment = {"PYTHONPATH": str(REPOSITORY), "TINY_API_KEY": self.api_key}
        pyinfra(self.lab, environment, *words, folder=self.folder, expect=expect)

    def show(self) -> None:
        """Print what the server on each host answers, and which release of SGLang it says it is."""
        for host in self.lab.hosts:
            answer = self._ask(host.address, "/generate", QUESTION)["text"]
            about = self._ask(host.address, "/server_info")
            stages = f"{about['pp_size']} stage{'s' if about['pp_size'] != 1 else ''}"
            print(f"  {host.name}  SGLang {about['version']}, {stages}: w3 w4 w5 →{answer}", flush=True)

    def _ask(self, address: str, path: str, body: object = None) -> dict[str, Any]:
        # The key travels on standard input: argv is for everybody to read.
        lines = [f'header = "Authorization: Bearer {self.api_key}"', f'url = "http://{address}:{PORT}{path}"']
        words = ["curl", "-sf", "-m", "30", "-K", "-"]
        if body is not None:
            words += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
        done = self.lab.run(words, stdin="\n".join(lines) + "\n")
        if done.returncode:
            raise LabError(f"{address}{path} does not answer: curl ended with {done.returncode}")
        return dict(json.loads(done.stdout))


def story(operator: Operator) -> None:
    """Tell it."""
    tell("SGLang 0.5.9 for a host that has nothing yet: what it takes, and then the rollout")
    operator.pyinfra("deploy.py", "-y")
    operator.show()
    tell("A broken change, a flag that SGLang does not know: the host takes it back by itself")
    operator.pyinfra("deploy.py", "-y", NO_SUCH_FLAG, expect=1)
    operator.show()
    tell("The upgrade: without its own file h1 gets 0.5.23, as a pipeline of two stages")
    (operator.folder / "host_vars" / "h1.yml").unlink()
    operator.pyinfra("deploy.py", "-y")
    operator.show()
    tell("And back to the release before: nothing is built again")
    operator.pyinfra("rollback.py", "-y")
    operator.show()


def main() -> int:
    """Run the demo; 0 when everything went as the story goes."""
    lab = Lab("realdemo")
    try:
        tell("Setting up a systemd host on this machine, with SGLang's CPU build to install from")
        lab.up(hosts=1, with_real=True)
        if not lab.hosts[0].is_pristine:
            lab.reset()
        lab.hosts[0].mark_used()
        ready = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            operator = Operator(lab, Path(folder), secrets.token_urlsafe(24))
            operator.prepare()
            story(operator)
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"\nThe story took {time.monotonic() - ready:.0f} s. The host stays up: look around with", flush=True)
    print("`.venv/bin/python -m lab shell --name realdemo h1`; `make clean` ends it.", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
