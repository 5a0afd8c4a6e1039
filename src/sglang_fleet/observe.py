"""One probe's answer → HostState. Pure.

host/probe writes the text. What it could not read arrives as `Unknown(why)`. Everything else is strict: a
value that is missing or of another type is a defect of the probe or of the connection, and raises
ProbeUnreadable with the value's path.
"""

from sglang_fleet.answer import ProbeUnreadable, Unknown, Value
from sglang_fleet.observed import (
    Activation,
    AlteredFiles,
    ComputeProcess,
    Disk,
    DropIn,
    Gpu,
    HostState,
    Model,
    NotKnown,
    OperatingSystem,
    Process,
    Proven,
    ServiceState,
    Toolkit,
    UnitFile,
    User,
    known,
)

__all__ = [
    "Activation",
    "AlteredFiles",
    "ComputeProcess",
    "Disk",
    "DropIn",
    "Gpu",
    "HostState",
    "Model",
    "NotKnown",
    "OperatingSystem",
    "ProbeUnreadable",
    "Process",
    "Proven",
    "ServiceState",
    "Toolkit",
    "UnitFile",
    "Unknown",
    "User",
    "known",
    "parse",
]

SCHEMA = 1
"""The version of the answer that this module reads."""


def parse(text: str) -> HostState:
    """Read what the probe printed. Raises ProbeUnreadable."""
    answer = Value.of(text)
    if answer["schema"].whole() != SCHEMA:
        raise answer["schema"].wrong(f"{SCHEMA}, the version this controller reads")
    return HostState(
        euid=answer["euid"].whole(),
        hostname=answer["hostname"].text(),
        machine_id=answer["machine_id"].known(Value.text),
        boot_id=answer["boot_id"].known(Value.text),
        arch=answer["arch"].text(),
        python=answer["python"].text(),
        os=answer["os"].known(_operating_system),
        glibc=answer["glibc"].maybe(Value.text),
        systemd=answer["systemd"].known(Value.whole),
        pythons={name: value.maybe(Value.text) for name, value in answer["pythons"].entries()},
        users={name: value.maybe(_user) for name, value in answer["users"].entries()},
        gpus=answer["gpus"].known(lambda value: value.each(_gpu)),
        driver=answer["driver"].maybe(Value.text),
        compute=answer["compute"].known(lambda value: value.each(_compute)),
        iommu=answer["iommu"].known(Value.texts),
        persistenced=answer["persistenced"].known(Value.flag),
        interfaces=answer["interfaces"].known(Value.texts),
        listeners=dict(_listeners(*entry) for entry in answer["listeners"].entries()),
        disk=Disk(**{name: answer["disk"][name].known(Value.whole) for name in ("state_free_bytes", "tmp_free_bytes")}),
        toolkit=Toolkit(home=answer["toolkit"]["home"].text(), version=answer["toolkit"]["version"].maybe(Value.text)),
        toolkit_verified=answer["toolkit_verified"].known(Value.flag),
        models={path: value.known(_model) for path, value in answer["models"].entries()},
        venvs=answer["venvs"].known(Value.texts),
        programs=answer["programs"].known(Value.texts),
        services={name: _service(value) for name, value in answer["services"].entries()},
        leftovers=answer["leftovers"].known(lambda value: {name: unit.text() for name, unit in value.entries()}),
    )


def _operating_system(value: Value) -> OperatingSystem:
    return OperatingSystem(
        id=value["id"].text(), version_id=value["version_id"].text(), codename=value["codename"].text()
    )


def _user(value: Value) -> User:
    return User(uid=value["uid"].whole(), home=value["home"].text())


def _gpu(value: Value) -> Gpu:
    return Gpu(
        index=value["index"].whole(),
        uuid=value["uuid"].text(),
        name=value["name"].text(),
        memory_total_mib=value["memory_total_mib"].known(Value.whole),
        memory_used_mib=value["memory_used_mib"].known(Value.whole),
        compute_cap=value["compute_cap"].known(Value.text),
    )


def _process(value: Value) -> Process:
    return Process(
        pid=value["pid"].known(Value.whole),
        command=value["command"].known(Value.text),
        unit=value["unit"].maybe(Value.text),
    )


def _compute(value: Value) -> ComputeProcess:
    process = _process(value)
    return ComputeProcess(
        pid=process.pid,
        command=process.command,
        unit=process.unit,
        gpu_uuid=value["gpu_uuid"].text(),
        used_mib=value["used_mib"].known(Value.whole),
    )


def _listeners(port: str, value: Value) -> tuple[int, tuple[Process, ...] | Unknown]:
    if not (port.isascii() and port.isdigit() and len(port) <= len("65535")):
        raise ProbeUnreadable(f"{value.path} is not a port")
    return int(port), value.known(lambda found: found.each(_process))


def _model(value: Value) -> Model:
    return Model(
        exists=value["exists"].flag(),
        directory=value["directory"].flag(),
        index=value["index"].flag(),
        missing=value["missing"].texts(),
        wrong_size=value["wrong_size"].texts(),
        bytes=value["bytes"].whole(),
        config=value["config"].maybe(Value.text),
    )


def _unit(value: Value) -> UnitFile | None:
    if not value["exists"].flag():
        return None
    return UnitFile(
        kind=value["kind"].text(),
        target=value["target"].maybe(Value.text),
        mode=value["mode"].known(Value.text),
        text=value["text_b64"].known(Value.data),
        owner=value["owner"].known(Value.whole),
    )


def _altered(value: Value) -> AlteredFiles:
    return AlteredFiles(edited=value["edited"].texts(), exposed=value["exposed"].texts())


def _dropin(value: Value) -> DropIn:
    return DropIn(path=value["path"].text(), content=value["text_b64"].known(Value.data))


def _proven(value: Value) -> Proven:
    return Proven(
        release=value["release"].text(),
        proven_at=value["proven_at"].text(),
        activation=value["activation"].text(),
        invocation=value["invocation"].text(),
    )


def _activation(value: Value) -> Activation:
    return Activation(id=value["id"].text(), outcome=value["outcome"].maybe(Value.text), by=value["by"].text())


def _service(value: Value) -> ServiceState:
    return ServiceState(
        unit=value["unit"].known(_unit),
        fragment=value["fragment"].known(Value.text),
        dropins=value["dropins"].known(lambda found: found.each(_dropin)),
        load=value["load"].known(Value.text),
        active=value["active"].known(Value.text),
        sub=value["sub"].known(Value.text),
        result=value["result"].known(Value.text),
        enabled=value["enabled"].known(Value.text),
        needs_reload=value["needs_reload"].known(Value.flag),
        main_pid=value["main_pid"].known(Value.whole),
        restarts=value["restarts"].known(Value.whole),
        invocation=value["invocation"].known(Value.text),
        active_since=value["active_since"].maybe(Value.text),
        running_release=value["running_release"].maybe(Value.text),
        installed_release=value["installed_release"].maybe(Value.text),
        installed_service=value["installed_service"].maybe(Value.text),
        releases=value["releases"].known(Value.texts),
        proven=value["proven"].known(lambda found: found.each(_proven)),
        last_activation=value["last_activation"].maybe(_activation),
        release_manifest=value["release_manifest"].maybe(Value.mapping),
        environment_file=value["environment_b64"].maybe(Value.data),
        staged_unit=value["staged_unit_b64"].maybe(Value.data),
        altered_files=value["altered_files"].known(_altered),
        shared_dropins=value["shared_dropins"].known(Value.texts),
    )
