"""`sglang-fleet lint`: what is wrong with the settings, and what is known to go wrong with such."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sglang_fleet.cli.answering import AnsweringCommand
from sglang_fleet.cli.common import (
    CLEAN,
    ERRORS,
    Failed,
    Settings,
    data_option,
    examples,
    json_option,
    load_settings,
    optional_inventory_argument,
    warn,
    write_json,
)
from sglang_fleet.cli.models import LocalModels, models_option

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from sglang_fleet.lint.fixing import Fixes
    from sglang_fleet.lint.rule import Severity
    from sglang_fleet.lint.run import Finding
    from sglang_fleet.problems import Problem

SETTINGS_CANNOT_BE_USED = "SGL001"


@dataclass(frozen=True, slots=True)
class Selection:
    """What to show.

    Attributes:
        rules: ids; empty: all.
        severity: the least grave.
        waived: whether waived findings, too.
    """

    rules: tuple[str, ...] = ()
    severity: Severity = "note"
    waived: bool = False

    def takes(self, finding: Finding) -> bool:
        """Whether to show a finding. Settings that cannot be used always count: no deploy begins with them."""
        from sglang_fleet.lint.run import SEVERITIES  # noqa: PLC0415  # --help need not wait for the rules

        if finding.rule == SETTINGS_CANNOT_BE_USED:
            return True
        grave = SEVERITIES[finding.severity] <= SEVERITIES[self.severity]
        return grave and (not self.rules or finding.rule in self.rules)


def _rules(_context: click.Context, _option: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        return ()
    from sglang_fleet.lint.register import by_id, near  # noqa: PLC0415  # --help need not wait for the rules

    for name in names:
        if by_id(name) is None:
            meant = near(name)
            hint = f"Did you mean {' or '.join(meant)}?" if meant else "`sglang-fleet explain` lists them."
            raise click.BadParameter(f"there is no rule {name}. {hint}")
    return tuple(name.upper() for name in names)


def _unanswered(params: Mapping[str, Any], problems: Sequence[Problem]) -> dict[str, object]:
    """What stands in place of the findings of settings that cannot even be looked for."""
    from sglang_fleet.cli.lint_text import Report  # noqa: PLC0415  # --help need not wait for the rules
    from sglang_fleet.lint.run import Finding  # noqa: PLC0415  # as above

    findings = [Finding(SETTINGS_CANNOT_BE_USED, "error", problem) for problem in problems]
    diff = "" if params.get("diff") else None
    return Report(Path.cwd(), 0, findings, waived=False, diff=diff, fix=bool(params.get("fix"))).as_json()


@click.command(
    "lint",
    cls=AnsweringCommand,
    unanswered=_unanswered,
    epilog=examples(
        "sglang-fleet lint inventory/prod.py",
        "sglang-fleet lint inventory/prod.py --severity warning",
        "sglang-fleet lint inventory/prod.py --diff",
        "sglang-fleet lint inventory/prod.py --fix",
    ),
)
@optional_inventory_argument
@data_option
@models_option()
@click.option("--rule", "rules", multiple=True, metavar="ID", callback=_rules, help="Only this rule; repeatable.")
@click.option(
    "--severity",
    type=click.Choice(["error", "warning", "note"]),
    default="note",
    help="Only findings this grave, or graver.",
)
@click.option("--waived", is_flag=True, help="Show waived findings, too.")
@click.option("--diff", is_flag=True, help="Show what --fix would change in the YAML; without --fix, change nothing.")
@click.option("--fix", is_flag=True, help="Put right what is safe to: a server does the same afterwards, or as meant.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix or --diff: also what changes how a server runs.")
@json_option
def command(  # noqa: PLR0913  # one for each option
    inventory: str | None,
    data: tuple[str, ...],
    models: Path | None,
    rules: tuple[str, ...],
    severity: Severity,
    *,
    waived: bool,
    diff: bool,
    fix: bool,
    unsafe_fixes: bool,
    as_json: bool,
) -> None:
    """Judge the settings of an inventory's hosts, without a connection.

    Without INVENTORY the only file in inventory/ is taken. Each finding has a rule: `sglang-fleet explain SGL201` says
    why. A model's config.json is looked at where it is on this machine: at model_path, or in --models.

    To keep a setting as it is, write the rule and the reason beside it or above it: `# waive SGL201: REASON`.

    Ends with 1 when there are errors that are not waived, else with 0.
    """
    from sglang_fleet.cli import lint_fixes, lint_text  # noqa: PLC0415  # --help need not wait for the rules

    if unsafe_fixes and not (fix or diff):
        raise click.UsageError("--unsafe-fixes goes with --fix or --diff.")
    selection = Selection(rules, severity, waived)
    known = LocalModels(models)
    settings, findings = _judged(inventory, data, selection, known)
    for note in (*settings.notes, *known.notes):
        warn(note)
    made = _fixes(findings, settings, unsafe=unsafe_fixes) if fix or diff else None
    report = lint_text.Report(settings.folder, len(settings.hosts), findings, waived, fix=fix, unsafe=unsafe_fixes)
    if made is not None and diff:
        report.diff = lint_fixes.diffs(made, folder=settings.folder)
        masked = () if fix else lint_fixes.masked(made, folder=settings.folder)
        if masked:
            warn(f"masked lines keep the diff of {', '.join(masked)} from being applied with git; --fix needs none")
    if made is not None and fix:
        _write(made)
        report.fixed, report.refused = lint_fixes.done(made), made.refused
        report.shared = _other_inventories(settings) if report.fixed else ()
        settings, report.findings = _judged(inventory, data, selection, known)
    elif made is not None:
        report.would_fix, report.refused = made.fixed, made.refused
    report.fixable = lint_fixes.fixable(report.findings, settings.loaded)
    if as_json:
        write_json(report.as_json())
    else:
        report.show()
    click.get_current_context().exit(ERRORS if report.has_errors else CLEAN)


def _judged(
    inventory: str | None, data: Sequence[str], selection: Selection, models: LocalModels
) -> tuple[Settings, list[Finding]]:
    """The settings, and the findings to show, waived ones among them."""
    from sglang_fleet.addresses import lock_reader  # noqa: PLC0415  # --help need not wait for the rules
    from sglang_fleet.lint.run import lint  # noqa: PLC0415  # as above

    settings = load_settings(inventory, data=data)
    found = lint(
        settings.loaded,
        model=models.facts,
        complete=_complete(settings, overridden=bool(data)),
        lock=lock_reader(settings.folder),
    )
    return settings, [finding for finding in found if selection.takes(finding)]


def _complete(settings: Settings, *, overridden: bool) -> Callable[[Path], bool]:
    """Whether all hosts that read a file were judged, as the file has it: then an idle waiver is known to be idle."""
    known = Path(settings.inventory).is_file() and not overridden
    alone = known and not _other_inventories(settings)
    own = settings.folder / "host_vars"
    return lambda file: alone or (known and file.is_relative_to(own))


def _other_inventories(settings: Settings) -> tuple[Path, ...]:
    """The inventories beside this one, whose hosts read the same group_vars."""
    this = Path(settings.inventory)
    if not this.is_file():
        return ()
    beside = sorted(file for file in this.parent.glob("*.py") if not file.name.startswith(("_", ".")))
    return tuple(file for file in beside if not file.samefile(this))


def _fixes(findings: Sequence[Finding], settings: Settings, *, unsafe: bool) -> Fixes:
    from sglang_fleet.lint.fixing import fixes  # noqa: PLC0415  # a mere lint need not wait for it

    return fixes(findings, settings.loaded, unsafe=unsafe)


def _write(made: Fixes) -> None:
    """Write the files, all or none."""
    from sglang_fleet.lint.writing import NotWrittenError, write  # noqa: PLC0415  # as above

    try:
        write(made.changes)
    except NotWrittenError as error:
        if not error.why:
            raise Failed(f"{error.file} has changed meanwhile, and nothing was written: run again.") from None
        raise Failed(f"{error.file} cannot be written, and nothing was: {error.why}.") from None
