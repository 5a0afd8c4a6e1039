"""Where the models of services are found on this machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from sglang_fleet.models import ModelFacts
    from sglang_fleet.spec import Service

_Command = TypeVar("_Command", bound="Callable[..., object]")


def models_option(also: str = "") -> Callable[[_Command], _Command]:
    """The option `--models`; `also`: what its help says besides."""
    return click.option(
        "--models",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="A folder with a folder for each model, named as the last part of model_path. "
        f"config.json is enough{also}.",
    )


def find_model(model: str, models: Path | None) -> Path | None:
    """The folder that holds the config.json of a model: where its path says, else by its last name in `models`."""
    name = Path(model.rstrip("/")).name
    places = [Path(model)] if Path(model).is_absolute() else []
    places += [models / name] if models and name not in ("", ".", "..") else []
    return next((place for place in places if (place / "config.json").is_file()), None)


def missing_model(model: str, models: Path | None) -> str:
    """What to do about a model that was not found."""
    wanted = f"{Path(model.rstrip('/')).name}/config.json"
    here = f"{models} has no {wanted}" if models else f"give --models DIR, with DIR/{wanted}"
    return f"the model is not on this machine: {here}"


@dataclass(slots=True)
class LocalModels:
    """The models of services, as far as this machine has them; each is read once.

    Attributes:
        folder: what `--models` names.
        notes: why what should be here could not be read, a sentence each.
    """

    folder: Path | None
    notes: dict[str, None] = field(default_factory=dict)
    _known: dict[str, ModelFacts | None] = field(default_factory=dict)

    def facts(self, service: Service) -> ModelFacts | None:
        """What is known of a service's model; None: it is not here, or not readable."""
        model = service.args.model_path
        if model not in self._known:
            self._known[model] = self._read(model)
        return self._known[model]

    def _read(self, model: str) -> ModelFacts | None:
        from sglang_fleet.models import ModelUnreadable, read_facts  # noqa: PLC0415  # --help need not wait for it

        found = find_model(model, self.folder)
        if found is None:
            if self.folder is not None:
                self._note(missing_model(model, self.folder))
            return None
        try:
            return read_facts(found)
        except (ModelUnreadable, OSError) as error:
            self._note(str(error))
            return None

    def _note(self, why: str) -> None:
        self.notes[f"{why}; what depends on the model was not judged"] = None
