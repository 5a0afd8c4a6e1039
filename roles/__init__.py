"""What happens on hosts: the only code that touches them, through pyinfra."""
