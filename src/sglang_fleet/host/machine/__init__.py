"""The host as it is: units, processes, ports, journal, answers over HTTP."""
