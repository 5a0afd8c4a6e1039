"""The place of one host in a replica of several."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Seat:
    """A host's place in the replica that it makes with others, for one service.

    Attributes:
        rank: which of the hosts it is, from 0.
        nodes: how many they are.
        name: the replica's name: its hosts, joined by `+`.
        hosts: the hosts, in the order of their ranks.
        leader: the address of rank 0, where the others meet.
        leader_host: where rank 0 answers the nodes; empty when it listens on its own loopback alone.
        leader_port: the port at which it answers.
        interface: the interface that NCCL and Gloo were given for this host; empty when none.
    """

    rank: int
    nodes: int
    name: str
    hosts: tuple[str, ...]
    leader: str
    leader_host: str = ""
    leader_port: int = 0
    interface: str = ""
