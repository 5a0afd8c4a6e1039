"""Your hosts. The order here is the order of the rollout: the first host is the canary.

A name is a host name or an address; settings such as `ssh_user` and `_sudo` go beside it.
Every list is a group, and group_vars/GROUP.yml and host_vars/HOST.yml refine group_vars/all.yml.
"""

k26 = [
    ("gpu-1.example.net", {"ssh_user": "root"}),
    ("gpu-2.example.net", {"ssh_user": "deploy", "_sudo": True}),
]
