"""The command line of one server, in SGLang's own names with underscores."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    model_serializer,
    model_validator,
)

from sglang_fleet.spec.base import Line, Noun, Port, Text, refusal

SECRETS = frozenset({"api_key", "admin_api_key", "ssl_keyfile_password", "watermark_config"})
"""The arguments of any release whose value is a secret."""

# `--config` is how secrets reach the server; the others end it.
_NEVER = ("config", "help", "version")
_NAME = r"[a-z][a-z0-9_]*"


def _argument_name(name: str) -> str:
    if name in SECRETS:
        raise refusal("is a secret: as an argument every user of the host could read it", secret_fix(name))
    if name in _NEVER:
        raise refusal("cannot be set here", "remove it, and write each argument as a key of its own")
    if not re.fullmatch(_NAME, name):
        better = name.lstrip("-").replace("-", "_").lower()
        example = better if re.fullmatch(_NAME, better) else "for example tp_size"
        raise refusal("is no name of an argument", f"write {example}: SGLang's flag with underscores")
    return name


def secret_fix(*names: str) -> str:
    """How to give the server secret arguments."""
    sources = ", ".join(f"{name}: {{env: NAME}}" for name in names)
    return f"say where {'it is' if len(names) == 1 else 'they are'}, in the service's secrets: {{{sources}}}"


def _argument_value(value: object) -> object:
    """Anything that is a text, whatever stands in it; what fits which argument is the catalogue's matter."""
    if isinstance(value, str) and "\0" in value:
        raise refusal("holds a NUL character, which no argument of a process can")
    if isinstance(value, str) and any(unicodedata.category(character) == "Cs" for character in value):
        raise refusal("holds half of a character", "write the whole one: \\U0001f642, not \\ud83d\\ude42")
    if isinstance(value, Mapping):
        for child in value.values():
            _argument_value(child)
    elif isinstance(value, (list, tuple)):
        for child in value:
            _argument_value(child)
    return value


def _served_model_name(value: str) -> str:
    # server_args.py asserts it: ':' separates a LoRA adapter from the model in a request.
    if ":" in value:
        raise refusal(f"holds ':', which SGLang refuses: {value!r}", "use another character")
    return value


Count = Annotated[int, Field(ge=1)]


def _length(value: object) -> object:
    # 8k and 4Ki since 0.5.10; whether the pinned release takes them is the catalogue's matter.
    if isinstance(value, str) and re.fullmatch(r"[0-9]+(\.[0-9]+)?[kMGT]|[0-9]+[KMGT]i", value):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise refusal("expects a whole number of tokens, at least 1", "write it like 32768, or like 32k")


Length = Annotated[int | str, BeforeValidator(_length)]


class Arguments(Noun):
    """What the product reasons about is typed; any other argument is kept and checked by the catalogue.

    Defaults are SGLang's own (0.5.23), so that a default and the same value written mean the same.

    Attributes:
        model_path: the model's folder on the host, or its name on a hub.
        served_model_name: the name that clients ask for; the model path when not set. No `:`.
        host: the address to listen on; 127.0.0.1 answers this host only, 0.0.0.0 every one.
        port: the port to listen on.
        tp_size: GPUs that share each layer (tensor parallel).
        pp_size: stages, one after the other, that share out the layers (pipeline parallel).
        dp_size: data parallel size.
        nnodes: hosts that run one replica together; filled in from the service's `nodes`.
        node_rank: which of these hosts this one is, from 0; filled in likewise, as is dist_init_addr.
        pp_async_batch_depth: batches in flight beyond one for each stage; may help many requests, never a single one.
        pp_max_micro_batch_size: requests in one batch of the pipeline; max_running_requests / pp_size when not set.
        mem_fraction_static: the share of GPU memory for weights and KV cache; SGLang chooses when not set.
        context_length: the longest context in tokens; the model's own when not set.
        max_running_requests: how many requests run at once; SGLang chooses when not set.
        attention_backend: the kernels for attention; SGLang chooses when not set.
        grammar_backend: what constrains structured output; SGLang chooses when not set.
        trust_remote_code: whether code that comes with the model may run.
    """

    model_config = ConfigDict(extra="allow", protected_namespaces=())
    __pydantic_extra__: dict[
        Annotated[str, AfterValidator(_argument_name)], Annotated[Any, BeforeValidator(_argument_value)]
    ]

    model_path: Text
    served_model_name: Annotated[Text, AfterValidator(_served_model_name)] | None = None
    host: Line = "127.0.0.1"
    port: Port = 30000
    tp_size: Count = 1
    pp_size: Count = 1
    dp_size: Count = 1
    nnodes: Count = 1
    node_rank: Annotated[int, Field(ge=0)] = 0
    pp_async_batch_depth: Annotated[int, Field(ge=0)] = 0
    pp_max_micro_batch_size: Count | None = None
    mem_fraction_static: Annotated[float, Field(gt=0, lt=1)] | None = None
    context_length: Length | None = None
    max_running_requests: Count | None = None
    attention_backend: Line | None = None
    grammar_backend: Line | None = None
    trust_remote_code: bool = False

    _order: tuple[str, ...] = PrivateAttr(default=())

    @model_validator(mode="wrap")
    @classmethod
    def _remember_order(cls, value: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        made = handler(value)
        if isinstance(value, Mapping):
            made._order = tuple(value)  # noqa: SLF001  # its own attribute: a wrap validator is a class method
        return made

    def ordered(self) -> list[tuple[str, Any]]:
        """The arguments that the operator wrote, in that order; no default that was not written."""
        return [(name, getattr(self, name)) for name in self._order]

    @model_serializer
    def _as_written(self) -> dict[str, Any]:
        return dict(self.ordered())
