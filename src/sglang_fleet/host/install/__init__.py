"""What an install step does: accounts, the CUDA toolkit, venvs, model folders, staged releases."""
