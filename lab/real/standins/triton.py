"""In the place of triton, which takes a gigabyte and compiles for GPUs only.

SGLang and torch decorate kernels and take names from it at import; here a kernel stays the function it was, and every
name and module is there. Asked for a GPU's driver triton raises where there is none, and so does this.
"""

import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__version__ = "3.7.0"
__path__: list[str] = []


class _Nothing:
    """Takes any call, attribute and index, decorates nothing, and may be a base class."""

    def __init__(self, *arguments: object, **settings: object) -> None:
        pass

    def __call__(self, *arguments: object, **settings: object) -> object:
        if len(arguments) == 1 and callable(arguments[0]) and not settings:
            return arguments[0]
        return self

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, key: object) -> object:
        return self

    def __iter__(self) -> Iterator[object]:
        return iter(())  # also for `in`, which would ask `__getitem__` for ever


class _Part(ModuleType):
    """A module of triton with every name."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "driver":
            raise RuntimeError("0 active drivers ([]). There should only be one.")
        # What may be asked `isinstance` must be a class.
        return type(name, (_Nothing,), {}) if name.lstrip("_")[:1].isupper() else _Nothing()


class _Parts(MetaPathFinder, Loader):
    """Finds every module of triton."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.startswith(f"{__name__}.") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Part(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


sys.meta_path.append(_Parts())
import_module(f"{__name__}.runtime")


def __getattr__(name: str) -> object:
    return getattr(_Part(__name__), name)
