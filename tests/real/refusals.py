"""What SGLang itself makes of a server's arguments, in a process of its own."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.real import installed, tiny_model

WORKER = Path(__file__).with_name("refusal_worker.py")
NOT_BESIDE_A_GPU = ("SGLANG_USE_CPU_ENGINE", "SGLANG_CPU_OMP_THREADS_BIND")


@dataclass(frozen=True)
class Answer:
    """What came of it.

    Attributes:
        refused: the error that ends the start, with the function that raised it; empty where there was none.
        resolved: the arguments as SGLang uses them, by its own names.
    """

    refused: str
    resolved: dict[str, object]


def ask(version: str, servers: Sequence[dict[str, object]], *, folder: Path) -> list[Answer]:
    """SGLang's own checks of the arguments of these servers, each beside the GPUs that it names."""
    environment = {
        name: value for name, value in installed.environment(version).items() if name not in NOT_BESIDE_A_GPU
    }
    done = subprocess.run(
        [installed.python(), WORKER, tiny_model.make(folder / "first")],
        cwd=folder,  # relative paths of the settings shall mean nothing that happens to be there
        env=environment,
        input="".join(json.dumps(server) + "\n" for server in servers),
        capture_output=True,
        text=True,
        check=False,
    )
    said, *answers = [json.loads(line) for line in done.stdout.splitlines()] or [None]
    assert said == version, done.stderr[-3000:]
    assert len(answers) == len(servers), done.stderr[-3000:]
    return [Answer(answer.get("refused", ""), answer.get("resolved", {})) for answer in answers]
