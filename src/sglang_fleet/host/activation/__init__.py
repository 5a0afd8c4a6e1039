"""The transaction: switch, gate, soak, record; or go back."""
