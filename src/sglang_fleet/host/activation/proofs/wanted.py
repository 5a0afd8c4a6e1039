"""Which proofs a gate asks for, and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Mapping

from .arguments import TIMEOUT as ARGUMENTS_SECONDS
from .arguments import Arguments
from .completion import Completion
from .counters import Counters
from .golden import Golden, GoldenSpec
from .throughput import SECONDS as THROUGHPUT_SECONDS
from .throughput import Throughput, ThroughputSpec

if TYPE_CHECKING:
    from ...machine.answers import Proof, Question
    from .records import Record


@dataclass(frozen=True)
class Wanted:
    """The proofs that a release's settings ask for beside a completion; none where an older release names none.

    Attributes:
        model: the folder or repository of the model; answers of another one are not compared.
    """

    model: str = ""
    arguments: Mapping[str, Any] | None = None
    counters: bool = False
    golden: GoldenSpec | None = None
    throughput: ThroughputSpec | None = None

    @classmethod
    def of(cls, gate: Mapping[str, Any], *, model: str) -> Wanted:
        """Return what a manifest's gate asks for."""
        arguments = gate.get("arguments")
        return cls(
            model=model,
            arguments=dict(arguments) if isinstance(arguments, dict) and arguments else None,
            counters=gate.get("counters") is True,
            golden=GoldenSpec.of(gate.get("golden")),
            throughput=ThroughputSpec.of(gate.get("throughput")),
        )

    def proofs(self, question: Question, *, completion: float, before: Record | None) -> tuple[Proof, ...]:
        """Return the proofs in their order: what is quick and most often wrong first.

        Ranks above 0 of a replica ask rank 0 for a completion and leave the rest to it. A server that makes vectors
        is asked for one, and for its arguments.
        """
        if question.probe == "alive":
            return ()
        first: list[Proof] = [Completion(completion, obeyed=self.counters)]
        if question.leader is not None:
            return tuple(first)
        generates = question.probe == "generate"
        if self.counters and generates:
            first.append(Counters(completion))
        if self.arguments is not None:
            first.append(Arguments(ARGUMENTS_SECONDS, self.arguments))
        if self.golden is not None and generates:
            first.append(Golden(self.golden.seconds, self.golden, before, self.model))
        if self.throughput is not None and generates:
            first.append(Throughput(THROUGHPUT_SECONDS, self.throughput, before))
        return tuple(first)
