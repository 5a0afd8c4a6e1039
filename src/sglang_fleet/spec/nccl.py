"""How GPUs talk to each other: NCCL's variables, typed, because NCCL ignores a wrong one without a word."""

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from sglang_fleet.spec.base import Line, Noun, refusal

# NCCL 2.30.7, src/graph/paths.cc: compared with strcmp, and an unknown name falls through.
_LEVELS = ("LOC", "NVL", "PIX", "PXB", "PHB", "SYS")
# NCCL 2.30.7, src/graph/tuning.cc: compared with strcasecmp, and an unknown word is an error.
_ALGORITHMS = ("Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT")
_PROTOCOLS = ("LL", "LL128", "Simple")
_DEBUG = ("VERSION", "WARN", "INFO", "ABORT", "TRACE")


def _level(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise refusal("expects a level", f"write one of {', '.join(_LEVELS)}, or a number from 0 (LOC) to 5 (SYS)")
    if isinstance(value, str) and value not in _LEVELS and value.upper() in _LEVELS:
        raise refusal(
            f"is ignored by NCCL when written as {value!r}", f"write {value.upper()}: upper case matters here"
        )
    if isinstance(value, int) and value < 0:
        raise refusal(f"expects a level, got {value}", "write a number from 0 (LOC) to 5 (SYS)")
    if isinstance(value, str) and value not in _LEVELS and not value.isdecimal():
        raise refusal(f"is no level of NCCL: {value!r}", f"write one of {', '.join(_LEVELS)}, or a number from 0 to 5")
    return str(value)


def _words(value: str, known: tuple[str, ...]) -> str:
    """A list of words, as NCCL reads it: `ring,tree`, `^tree`, `allreduce:ring;broadcast:tree`."""
    lower = [word.lower() for word in known]
    for part in value.split(";"):
        for word in part.rpartition(":")[2].removeprefix("^").split(","):
            if word.strip().lower() not in lower:
                raise refusal(f"has a word that NCCL does not know: {word!r}", f"the words are {', '.join(known)}")
    return value


def _algorithm(value: str) -> str:
    return _words(value, _ALGORITHMS)


def _protocol(value: str) -> str:
    return _words(value, _PROTOCOLS)


def _debug(value: str) -> str:
    if value.upper() not in _DEBUG:
        raise refusal(f"is no level that NCCL knows: {value!r}", f"write one of {', '.join(_DEBUG)}")
    return value


Level = Annotated[str, BeforeValidator(_level)]
Natural = Annotated[int, Field(ge=0)]


# The meanings of the fields are those of NCCL's user guide, "Environment Variables".
class Nccl(Noun):
    """NCCL's variables without their prefix: `p2p_level` is NCCL_P2P_LEVEL; `environment` takes others.

    What is not set is left to NCCL.

    Attributes:
        p2p_level: how far apart two GPUs may be to talk directly: LOC (never), NVL, PIX, PXB, PHB, SYS (any).
        p2p_disable: turns direct transport between GPUs off; wins over p2p_level.
        shm_disable: turns transport through shared memory off.
        ib_disable: turns InfiniBand and RoCE off.
        ib_hca: which InfiniBand adapters to use.
        ib_gid_index: the global id index for RoCE.
        ib_timeout: InfiniBand's timeout, as its exponent: 4.096 µs * 2^ib_timeout.
        ib_retry_cnt: how often InfiniBand tries again.
        net: the network to use, such as IB or Socket.
        net_gdr_level: how far apart a GPU and a network card may be to talk directly (GPUDirect RDMA).
        socket_ifname: which network interfaces to use, as prefixes: `eth`, `=eth0`, `^docker`.
        socket_nthreads: CPU threads for each connection of the socket transport.
        nsocks_perthread: sockets that each of these threads opens.
        algo: the algorithms to choose from, such as `Ring` or `^Tree`; any case.
        proto: the protocols to choose from: LL, LL128, Simple; any case.
        buffsize: bytes of the buffer between two GPUs.
        nthreads: CUDA threads in a block.
        min_nchannels: the fewest channels to use.
        max_nchannels: the most channels to use.
        min_ctas: the fewest thread blocks (CTAs) to use.
        max_ctas: the most thread blocks (CTAs) to use.
        nvls_enable: whether to use NVLink SHARP.
        cumem_enable: whether to allocate memory with CUDA's cuMem functions.
        cross_nic: whether one ring or tree may use different network cards on different hosts: 0, 1 or 2.
        ignore_cpu_affinity: whether to go by the GPU's CPUs only, not by those that the process was given.
        topo_file: an XML file with the topology, read before NCCL looks for itself.
        graph_file: NCCL_GRAPH_FILE.
        debug: how much NCCL logs: VERSION, WARN, INFO, ABORT or TRACE.
        debug_subsys: which parts of NCCL log, as `INIT,GRAPH`.
        debug_file: the file that the log goes to; `%h` is the host, `%p` the process.
    """

    p2p_level: Level | None = None
    p2p_disable: bool | None = None
    shm_disable: bool | None = None
    ib_disable: bool | None = None
    ib_hca: Line | None = None
    ib_gid_index: Natural | None = None
    ib_timeout: Natural | None = None
    ib_retry_cnt: Natural | None = None
    net: Line | None = None
    net_gdr_level: Level | None = None
    socket_ifname: Line | None = None
    socket_nthreads: Natural | None = None
    nsocks_perthread: Natural | None = None
    algo: Annotated[Line, AfterValidator(_algorithm)] | None = None
    proto: Annotated[Line, AfterValidator(_protocol)] | None = None
    buffsize: Natural | None = None
    nthreads: Natural | None = None
    min_nchannels: Natural | None = None
    max_nchannels: Natural | None = None
    min_ctas: Natural | None = None
    max_ctas: Natural | None = None
    nvls_enable: bool | None = None
    cumem_enable: bool | None = None
    cross_nic: Natural | None = None
    ignore_cpu_affinity: bool | None = None
    topo_file: Line | None = None
    graph_file: Line | None = None
    debug: Annotated[Line, AfterValidator(_debug)] | None = None
    debug_subsys: Line | None = None
    debug_file: Line | None = None

    def environment(self) -> dict[str, str]:
        """The variables, in the order of the fields: `{"NCCL_P2P_LEVEL": "5", "NCCL_IB_DISABLE": "1"}`."""
        return {
            variable(name): str(int(value)) if isinstance(value, bool) else str(value)
            for name, value in self
            if value is not None
        }


def variable(name: str) -> str:
    """The variable of a field: `NCCL_P2P_LEVEL` of `p2p_level`."""
    return f"NCCL_{name.upper()}"
