"""Who can reach a server, and what they could do there."""

from __future__ import annotations

import json
import re
from itertools import zip_longest
from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import is_path
from sglang_fleet.masking import holds_secret, is_harmless, is_sensitive, looks_secret

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView

_LOOPBACK = re.compile(r"localhost|127(\.[0-9]+){3}|::1|\[::1\]")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_LOGIN = re.compile(r"\w://[^\s/@:\"']*:(?P<password>[^\s/@]+)@|\b(?:bearer|basic)\s+(?P<token>\S{8,})", re.IGNORECASE)
_OF_THE_MODEL = "json_model_override_args"  # its tokens are those that models read
_ENCODER = ("encoder_only", "language_only", "encoder_urls")


def is_open(view: ServiceView) -> bool:
    """Whether other machines can reach the server."""
    return not _LOOPBACK.fullmatch(view.service.args.host.strip())


@service_rule("SGL701", "warning")
def open_to_everyone(view: ServiceView) -> Iterator[Found]:
    """Everyone who can reach the host may use the server.

    Why: Without a key nothing is asked of a client: whoever reaches the port can spend the GPUs, read what others
    cached, and manage the server (flush its cache, load other weights, profile it). SGLang's own default is 127.0.0.1.

    Evidence: sglang 0.5.23, srt/utils/auth.py (without keys everything is allowed); CVE-2026-3059 and CVE-2026-3060
    (CVSS 9.8, sglang PR#21435) show what an open port of it has been good for.

    Fix: Give the server a key, `secrets: {api_key: {env: NAME}}`; or listen on 127.0.0.1, behind a router that
    asks for one.
    """
    if is_open(view) and "api_key" not in view.service.secrets:
        yield view.found(
            "host",
            f"{view.service.args.host} is reachable from other machines, and no api_key is asked for",
            "add api_key to secrets, or listen on 127.0.0.1",
        )


@service_rule("SGL702", "warning")
def code_of_whoever_owns_the_repository(view: ServiceView) -> Iterator[Found]:
    """Code from a model hub runs in the server, in whatever version it has that day.

    Why: trust_remote_code runs Python that comes with the model. With a model that is named by its repository, and no
    commit to pin it, a changed repository is run at the next start, on every host, without a release.

    Evidence: sglang 0.5.23, srt/utils/hf_transformers: trust_remote_code and revision are handed to transformers,
    which takes the newest revision when none is given.

    Fix: Copy the model to the hosts and name its folder, or set revision to a commit.
    """
    args = view.service.args
    if args.trust_remote_code and not is_path(args.model_path):
        revision = view.value("revision")
        if not (isinstance(revision, str) and _COMMIT.fullmatch(revision)):
            yield view.found(
                "trust_remote_code",
                f"code of {args.model_path} runs in the server, in the version that the hub has when it starts",
                "set revision to a commit, or name a folder on the host as model_path",
            )


@service_rule("SGL703", "warning")
def secret_in_clear(view: ServiceView) -> Iterator[Found]:
    """A secret stands in the settings.

    Why: Settings are kept in git and shown in plans. A secret that stands in them is known to everyone who may read
    those. On the command line every user of the host can read it as well. With `secrets` the settings say only where
    the value is. A secret is known here by its name (HF_TOKEN; also within a value: token=…), or by its form: the
    password in an address (http://user:password@host), a token after "Bearer", what begins as the keys of well-known
    services do (hf_…, sk-…, ghp_…).

    Evidence: The name of the variable or option, or the form of its value; docs/settings.md, "secrets".

    Fix: Write where the value is, in `secrets` (`HF_TOKEN: {env: HF_TOKEN}`), and remove it here. Then change the
    secret itself: git keeps the old one.
    """
    for name, text in view.service.environment.items():
        if is_sensitive(name) and not is_harmless(text):
            why = "by its name this is a secret, and it stands here in clear"
        elif _holds_login(text) or holds_secret(text):
            why = "holds a password or a token, in clear"
        else:
            continue
        yield view.found_at(
            f"environment.{name}",
            why,
            f"say where it is, in secrets: {{{name}: {{env: {name}}}}}; and change the secret",
        )
    for name, value in view.service.args.ordered():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        if _holds_login(text) or (looks_secret if name == _OF_THE_MODEL else holds_secret)(text):
            yield view.found(
                name,
                "holds a password or a token, which every user of the host can read",
                "take it out, and change the secret",
            )
    words = view.service.extra_args
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        flag, equals, value = word.partition("=")
        value = value if equals else "" if following.startswith("--") else following
        if flag.startswith("--") and is_sensitive(flag) and not is_harmless(value):
            yield view.found_at(
                "extra_args",
                f"the value of {flag} is a secret by its name, and every user of the host can read it",
                "take it out, and change the secret",
            )
        elif _holds_login(word) or holds_secret(word):
            yield view.found_at(
                "extra_args",
                "a word holds a password or a token, which every user of the host can read",
                "take it out, and change the secret",
            )
    description = view.service.description or ""
    if _holds_login(description) or looks_secret(description):
        yield view.found_at(
            "description",
            "holds a password or a token, which every user of the host can read",
            "take it out, and change the secret",
        )


def _holds_login(text: str) -> bool:
    """Whether there is an address with a password in a text, or the value of a header that proves who asks."""
    found = _LOGIN.search(text)
    return found is not None and not (found["password"] or found["token"]).startswith("$")


@service_rule("SGL704", "note")
def runs_as_root(view: ServiceView) -> Iterator[Found]:
    """The server runs as root.

    Why: Whoever breaks into the server then owns more of the host than an account of its own would give. The unit
    takes much away (the file system is read-only but for caches, no new privileges), not everything. Only root can
    read a model that lies under /root, so that it has to be moved first.

    Evidence: CVE-2026-3059 and CVE-2026-3060: code of a stranger ran with the server's rights.

    Fix: Move the model out of /root, if it lies there. Then remove `user: root`: the server runs as the account
    sglang, which is made.
    """
    if view.service.user == "root":
        under_root = view.service.args.model_path.startswith("/root/")
        yield view.found_at(
            "user",
            "whoever breaks into the server is root" + (": the model lies under /root" if under_root else ""),
            "move the model out of /root, then remove `user: root`" if under_root else "remove `user: root`",
        )


@service_rule("SGL705", "warning")
def prompts_in_the_journal(view: ServiceView) -> Iterator[Found]:
    """Prompts and answers are written to the journal.

    Why: log_requests writes each request and its answer to the log, at its default level 2 the first 2048 characters
    of both, at 3 all of them. The journal is kept, copied and read by more people than those requests were meant for.

    Evidence: sglang 0.5.9 and 0.5.23, srt/utils/request_logger.py; log_requests_level: 2 when not set.

    Fix: Set log_requests_level to 0 or 1 (no text), or remove log_requests.
    """
    level = view.number("log_requests_level")
    if view.value("log_requests") is True and level is not None and level > 1:
        amount = "2048 characters of each" if level == 2 else "whole"  # noqa: PLR2004 - SGLang's own level
        yield view.found(
            "log_requests",
            f"prompts and answers are logged ({amount}) at log_requests_level {level}",
            "set log_requests_level to 1, or remove it",
            edits=(view.set("log_requests_level", 1),),
        )


@service_rule("SGL706", "warning")
def pickle_from_the_network(view: ServiceView) -> Iterator[Found]:
    """With encoder disaggregation this release runs code that comes from the network.

    Why: Until 0.5.10 the receiver of image embeddings listens on every address, asks nobody for a key, and unpickles
    what arrives: whoever can reach the host runs code in the server.

    Evidence: CVE-2026-3060 (CVSS 9.8); sglang PR#21435 and #20904, in 0.5.10; sglang 0.5.9, srt/utils/common.py,
    get_zmq_socket_on_host binds to tcp://*.

    Fix: Pin sglang 0.5.10 or newer, or keep others away from the host's ports.
    """
    for name in _ENCODER:
        if view.value(name) and not view.since("0.5.10"):
            yield view.found(
                name,
                f"with it sglang {view.version} unpickles what comes to an open port: anyone runs code (CVE-2026-3060)",
                "pin sglang 0.5.10 or newer",
            )
            return


@service_rule("SGL707", "warning")
def code_in_requests(view: ServiceView) -> Iterator[Found]:
    """Clients may send code that the server runs.

    Why: With enable_custom_logit_processor a request may carry a pickled Python object, which the server unpacks and
    calls. Everybody who may ask the model a question can run code with the server's rights.

    Evidence: sglang 0.5.23, srt/sampling/custom_logit_processor.py (dill.loads); sglang PR#30798 (CVE-2026-7304).

    Fix: Remove enable_custom_logit_processor, unless everybody who can reach the server may have a shell on
    the host as well.
    """
    if view.value("enable_custom_logit_processor") is True and is_open(view):
        yield view.found(
            "enable_custom_logit_processor",
            "a request may carry code, which runs with the server's rights (CVE-2026-7304)",
            "remove it, or listen on 127.0.0.1",
        )


@service_rule("SGL708", "error")
def keys_with_grpc(view: ServiceView) -> Iterator[Found]:
    """grpc_port and a key exclude each other.

    Why: SGLang's gRPC listener asks for no key, so SGLang refuses to start with both.

    Evidence: sglang 0.5.23, srt/arg_groups/serving_hook.py: "--grpc-port is incompatible with --api-key".

    Fix: Remove grpc_port, or the keys.
    """
    keys = [name for name in ("api_key", "admin_api_key") if name in view.service.secrets]
    if keys and view.written("grpc_port") and view.has("grpc_port") and view.value("grpc_port") is not None:
        yield view.found(
            "grpc_port", f"SGLang does not start with it and {keys[0]}", f"remove it, or {keys[0]} from secrets"
        )


@service_rule("SGL709", "note")
def one_key_for_users_and_operators(view: ServiceView) -> Iterator[Found]:
    """Whoever may use the server may manage it.

    Why: Without admin_api_key the endpoints that flush the cache, load other weights or profile the server take
    api_key, which every client has. With it they take nothing else.

    Evidence: sglang 0.5.23, srt/utils/auth.py (ADMIN_OPTIONAL). One endpoint of earlier releases passed over the
    admin key: sglang#30165.

    Fix: Add admin_api_key to secrets.
    """
    secrets = view.service.secrets
    if is_open(view) and "api_key" in secrets and "admin_api_key" not in secrets and view.has("admin_api_key"):
        yield view.found_at(
            "secrets.api_key",
            "whoever has it may also flush the cache and load other weights",
            "add admin_api_key to secrets",
        )
