"""What pyinfra runs where hosts are only asked something, or freed of a lock: see asking.py."""

from roles import asking

asking.once()
