"""What happens on hosts: the only code that touches them, through pyinfra."""

import gc

# What pyinfra has loaded so far stays until the end. Not to go through it again and again while ours is loaded saves
# 20 ms of every run.
gc.freeze()
