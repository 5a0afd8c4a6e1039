"""Make the flag catalogue: every command line argument of every SGLang release, from each release's own wheel.

    python -m tools.catalogue               every release the catalogue holds, again
    python -m tools.catalogue 0.5.24        one release: added, or read again

The wheel comes from pip. Its arguments are read out of its syntax trees; nothing of it is imported: no torch, no GPU.
What a declaration means to argparse depends on a few functions and classes of the wheel; `known_code` has a digest of
each one that this tool was written against. Whatever else the tool meets and does not know ends it: it never guesses.

Where arguments are declared:

- up to 0.5.13, `parser.add_argument(…)` in `sglang/srt/server_args.py: ServerArgs.add_cli_args`;
- from 0.5.14, annotated fields of `ServerArgs` (`name: A[TYPE, Arg(…)]`) as well, which
  `arg_groups/arg_utils.py: add_cli_args_from_dataclass` hands to argparse;
- from 0.5.20, the same fields in the classes of `arg_groups/fields/` that `_INPUT_NAMESPACES` lists.
"""
