"""Scenarios shared by several tests."""

import pytest

ONE_PATH = """
name = "One path"
duration = "20 s"
sample_interval = "50 ms"

[link.bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
buffer = "1 BDP"
loss = "0.05 %"

[path.main]
forward = ["bottleneck"]
reverse_delay = "20 ms"

[[flow]]
name = "flow"
path = "main"
cc = "reno"
"""

TWO_PATHS = """
name = "Two paths"
duration = "10 s"

[link.fast]
rate = "20 Mbit/s"
delay = "10 ms"
buffer = "1 BDP"
[link.slow]
rate = "5 Mbit/s"
delay = "60 ms"
buffer = "1 BDP"

[path.fast]
forward = ["fast"]
reverse_delay = "10 ms"
[path.slow]
forward = ["slow"]
reverse_delay = "60 ms"

[[flow]]
name = "flow"
paths = ["fast", "slow"]
cc = "cubic"
scheduler = "minrtt"
receive_window = "200 kB"
workload = { mix = { arrival_interval = "200 ms", sizes = "300 kB" } }
"""


@pytest.fixture
def one_path():
    return ONE_PATH


@pytest.fixture
def two_paths():
    return TWO_PATHS
