"""The pure core of sglang-fleet: from YAML to a plan, without touching a host or the network."""
