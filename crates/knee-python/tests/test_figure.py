"""Figures by matplotlib."""

import sys

import knee
import matplotlib
import pytest

matplotlib.use("agg")


def lines(ax):
    return {line.get_label(): line.get_xydata() for line in ax.get_lines()}


def test_throughput_is_what_arrived_over_time(one_path):
    run = knee.run(one_path)
    ax = knee.figure(run)
    (points,) = lines(ax).values()
    # Samples are 50 ms apart; the area below the line is the bytes delivered.
    megabits = sum(points[:, 1]) * 0.05
    delivered = run.samples["delivered_bytes"]
    assert megabits == pytest.approx(8e-6 * (delivered[-1] - delivered[0]), rel=1e-9)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time (s)", "goodput (Mbit/s)")


def test_delay_and_queue_in_milliseconds(one_path):
    run = knee.run(one_path, set={"link.bottleneck.loss": "0 %"})
    (rtt,) = lines(knee.figure(run, "delay")).values()
    # 20 ms each way, 40 ms of buffer, 1.2 ms for a packet at 10 Mbit/s.
    assert 40 < min(rtt[:, 1]) < 42 and 75 < max(rtt[:, 1]) < 85
    queue = lines(knee.figure(run, "queue"))["bottleneck"]
    assert 35 < max(queue[:, 1]) < 42


def test_two_figures_side_by_side(one_path):
    from matplotlib import pyplot

    run = knee.run(one_path, set={"flow.flow.count": 2})
    figure, (left, right) = pyplot.subplots(1, 2)
    assert knee.figure(run, "window", ax=left) is left
    assert knee.figure(run, "in-flight", ax=right) is right
    assert len(figure.axes) == 2
    assert list(lines(left)) == list(lines(right)) == ["flow[0]", "flow[1]"]


def test_a_ranking_in_the_plane(one_path):
    ranking = knee.rank(one_path, cc=["reno", "vegas"], repeat=2)
    ax = knee.figure(ranking)
    at = {bar.get_label(): bar.lines[0].get_xydata()[0] for bar in ax.containers}
    # Reno fills the buffer, Vegas keeps two to four packets in it.
    assert at["vegas"][0] < 1.3 < at["reno"][0] < 2.2
    assert 50 < at["reno"][1] <= 100 and 50 < at["vegas"][1] <= 100


def test_what_is_no_figure(one_path):
    run = knee.run(one_path)
    with pytest.raises(ValueError, match='write "throughput" or "delay" or'):
        knee.figure(run, "rtt")
    with pytest.raises(TypeError, match="dict has no figure"):
        knee.figure(run.summary)


def test_without_matplotlib(one_path, monkeypatch):
    run = knee.run(one_path)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'knee\[figures\]'"):
        knee.figure(run)
