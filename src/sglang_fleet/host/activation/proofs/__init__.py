"""What a server has to show before its release is proven, beside a /health that says 200.

Each proof is one question with one line of why. They are asked one after the other, from the asking thread, so that a
process that dies meanwhile is seen at once; `wanted` says which, and `records` keeps what the next release is held
against.
"""
