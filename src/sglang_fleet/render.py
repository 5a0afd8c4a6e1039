"""From a service's spec to the texts a release is made of: unit, environment, secret files.

Pure and deterministic: the same spec gives the same bytes on every controller.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from sglang_fleet.catalog import Catalogue, nearest, plain_words
from sglang_fleet.spec.secrets import is_argument
from sglang_fleet.spec.service import Service
from sglang_fleet.systemd_text import environment_line, exec_word, path_value, path_word, unit_value

STATE = "/var/lib/sglang-fleet"
HOME = "/var/lib/sglang"
CACHE = "/var/cache/sglang"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TEMPLATES = (Path(__file__).parents[2] / "templates", Path(__file__).parent / "templates")

RESTART_SECONDS = 10
START_LIMIT_BURST = 5
# How long a start takes that fails slowest, whatever the deadline: with the port in use (measured on 0.5.23: 138 s).
SLOWEST_FAILURE_SECONDS = 150
# SGLang waits 15 s for its schedulers after the drain, then kills them (measured on 0.5.23 with pp_size 2).
STOP_MARGIN_SECONDS = 40

# At start SGLang logs its whole server_args, keys included, at level INFO from this logger.
# Source: sglang 0.5.23, srt/entrypoints/engine.py; configure_logger in srt/utils/common.py reads the file
# that SGLANG_LOGGING_CONFIG_PATH names, in every process, instead of setting logging up itself.
LOGGER_THAT_PRINTS_KEYS = "sglang.srt.entrypoints.engine"


@dataclass(frozen=True, slots=True)
class Places:
    """Where a release and what it needs stand on the host.

    Attributes:
        release: the release's id, or a placeholder while the id is being computed.
        venv_id: the content address of the SGLang venv.
        cuda_home: the versioned CUDA folder, never the movable `/usr/local/cuda`.
    """

    service: str
    release: str
    venv_id: str
    cuda_home: str

    @property
    def release_folder(self) -> str:
        """The release's own folder."""
        return f"{STATE}/services/{self.service}/releases/{self.release}"

    @property
    def venv(self) -> str:
        """The immutable SGLang venv."""
        return f"{STATE}/venvs/{self.venv_id}"


@dataclass(frozen=True, slots=True)
class RenderedFile:
    """One file of a release: its name, its text, who may read it."""

    name: str
    text: str
    mode: str = "0644"
    owner: str = "root"


def render(*, service: Service, version: str, places: Places, secrets: Mapping[str, str]) -> tuple[RenderedFile, ...]:
    """Every file of one release.

    Args:
        service: the service's spec.
        version: the SGLang release, for its flags.
        places: where things stand on the host.
        secrets: the secrets' values by name; they reach only the files whose mode keeps others out.
    """
    arguments = {key: value for key, value in secrets.items() if is_argument(key)}
    variables = {key: value for key, value in secrets.items() if not is_argument(key)}
    files = [
        RenderedFile("unit", unit_text(service, version=version, places=places)),
        RenderedFile("environment", environment_text(service, places), mode="0600"),
    ]
    if variables:
        lines = [environment_line(key, value) for key, value in sorted(variables.items())]
        files.append(RenderedFile("environment.secret", "\n".join(lines) + "\n", mode="0600"))
    if arguments:
        config = {key.replace("_", "-"): value for key, value in sorted(arguments.items())}
        text = "".join(f"{key}: {yaml_text(value)}\n" for key, value in config.items())
        files.append(RenderedFile("secrets.yaml", text, mode="0400", owner=service.user))
        level = dict(service.args.ordered()).get("log_level") or "info"
        files.append(RenderedFile("logging.json", logging_text(level=str(level))))
    return tuple(files)


def command_words(service: Service, *, version: str, venv: str, release_folder: str) -> list[list[str]]:
    """ExecStart's words: the command, then one list for each option with its values."""
    known = nearest(version)
    command = [f"{venv}/bin/python", "-m", "sglang.launch_server"]
    options = [option_words(known, key, value) for key, value in service.args.ordered()]
    if any(is_argument(key) for key in service.secrets):
        options.append(["--config", f"{release_folder}/secrets.yaml"])
    options += [[word] for word in service.extra_args]
    return [command, *[words for words in options if words]]


def unit_text(service: Service, *, version: str, places: Places) -> str:
    """The systemd unit, as it is installed."""
    command, *options = command_words(service, version=version, venv=places.venv, release_folder=places.release_folder)
    startup, drain = service.health.startup_deadline, service.health.drain
    text: str = _template().render(
        service=service.name,
        release=places.release,
        venv_id=places.venv_id,
        description=unit_value(service.description or f"SGLang {service.name}"),
        user=service.user,
        working_directory=path_value(service.working_directory or f"{HOME}/{service.name}"),
        needed_mounts=[path_word(path) for path in _mounts(service)],
        release_folder=places.release_folder,
        has_secret_environment=any(not is_argument(key) for key in service.secrets),
        command=[exec_word(word) for word in command],
        options=[[exec_word(word) for word in option] for option in options],
        timeout_start=_seconds(startup),
        timeout_stop=_seconds(drain + STOP_MARGIN_SECONDS),
        restart_seconds=RESTART_SECONDS,
        start_limit_burst=START_LIMIT_BURST,
        start_limit_interval=_seconds(
            (START_LIMIT_BURST + 1) * (max(startup, SLOWEST_FAILURE_SECONDS) + RESTART_SECONDS)
        ),
        limits=limits(service),
        writable_paths=[path_word(path) for path in service.writable_paths],
    )
    return text


def _mounts(service: Service) -> list[str]:
    """The folders whose file systems have to be there before the server starts; a network mount comes late at boot."""
    model = [service.args.model_path] if service.args.model_path.startswith("/") else []
    return [*model, *service.writable_paths]


def limits(service: Service) -> dict[str, int | str]:
    """Resource limits by systemd's names; systemd's own defaults (8 MiB memlock, 1024 files) are too low."""
    wanted = {
        "LimitNOFILE": 1048576 if service.limits.nofile is None else service.limits.nofile,
        "LimitMEMLOCK": "infinity" if service.limits.memlock is None else service.limits.memlock,
        "LimitNPROC": service.limits.nproc,
        "LimitCORE": service.limits.core,
    }
    return {name: value for name, value in wanted.items() if value is not None}


def environment_text(service: Service, places: Places) -> str:
    """The plain settings of the server's environment; the operator's own win over ours."""
    cache_folder = f"{CACHE}/{service.name}/{places.venv_id}"
    values = {
        "PATH": f"{places.venv}/bin:{places.cuda_home}/bin:{SYSTEM_PATH}",
        "CUDA_HOME": places.cuda_home,
        "HOME": f"{HOME}/{service.name}",
        "PYTHONUNBUFFERED": "1",
        # A model that is named by its repository is not downloaded again for another venv.
        "HF_HOME": f"{HOME}/{service.name}/huggingface",
        # Compiled kernels belong to one venv: an upgrade starts with an empty cache.
        "XDG_CACHE_HOME": cache_folder,
        "TRITON_CACHE_DIR": f"{cache_folder}/triton",
        "TORCHINDUCTOR_CACHE_DIR": f"{cache_folder}/inductor",
        "FLASHINFER_WORKSPACE_BASE": cache_folder,
        "MAX_JOBS": "8",
    }
    if service.args.model_path.startswith("/"):
        values["HF_HUB_OFFLINE"] = "1"
    if service.gpus is not None:
        values["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        values["CUDA_VISIBLE_DEVICES"] = ",".join(str(index) for index in service.gpus)
    if any(is_argument(key) for key in service.secrets):
        values["SGLANG_LOGGING_CONFIG_PATH"] = f"{places.release_folder}/logging.json"
    values |= service.nccl.environment() | dict(service.environment)
    values["SGLANG_FLEET_RELEASE"] = places.release
    return "".join(environment_line(key, value) + "\n" for key, value in values.items())


def yaml_text(value: str) -> str:
    r"""A text as a YAML double-quoted scalar, which a JSON string is but for two things.

    JSON writes a character beyond U+FFFF as two escapes, which a YAML reader takes for two characters, and leaves
    DEL as it is, which YAML forbids.
    """
    return '"' + "".join(_yaml_character(character) for character in value) + '"'


def _yaml_character(character: str) -> str:
    if character > "\uffff":
        return character
    return "\\u007f" if character == "\x7f" else json.dumps(character)[1:-1]


def logging_text(*, level: str) -> str:
    """SGLang's own logging, less the lines that hold keys; schedulers need the root handler to log at all.

    With this file SGLang ignores its own `--log-level`, so the level stands here.
    """
    config = {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"sglang": {"format": "[%(asctime)s] %(message)s", "datefmt": "%Y-%m-%d %H:%M:%S"}},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "sglang"}},
        "root": {"level": level.upper(), "handlers": ["console"]},
        "loggers": {logger: {"level": "WARNING"} for logger in (LOGGER_THAT_PRINTS_KEYS, "httpx", "httpcore")},
    }
    return json.dumps(config, indent=2) + "\n"


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - the output is a systemd unit, whose escaping systemd_text.py does
    )
    return environment.get_template("sglang.service.j2")


def option_words(known: Catalogue, key: str, value: object) -> list[str]:
    """An argument's words; by a plain rule where only another release's flags are known and it does not fit them."""
    argument = known.find(key)
    return plain_words(key, value) if argument is None or argument.check(key, value) else argument.render(value)


def _seconds(value: float) -> str:
    return f"{value:g}" if value < 1e6 else str(int(value))  # noqa: PLR2004 - where %g turns to exponents
