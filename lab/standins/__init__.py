"""Stand-ins: programs that take a real one's place on lab hosts, where there is no GPU.

Each says in its own documentation what it copies and what it does not. Nothing in src/ or roles/ knows that
any of them exists: what is deployed to a lab host is deployed the same way as to a real one.
"""
