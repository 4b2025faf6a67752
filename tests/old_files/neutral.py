"""Imported first by the programs that 0.1 runs: what is written does not name this machine.

Of the machine 0.1 wrote the platform's name, and a hash of host, boot and container.
"""

import platform

import nethook.runs.owner

platform.platform = lambda *_, **__: "Linux"
nethook.runs.owner._host = lambda: "0123456789abcdef"
