"""What runs on the hosts: Python 3.9 and its standard library only, shipped as one zipapp (see program.py)."""
