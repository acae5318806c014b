"""Executors of sweeps and evaluations. Results are ordered by the number of the run, and
each run has its own seed, so nothing depends on the executor."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from ._knee import KneeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Make = Callable[[Any, list[Any]], list[Any]]

BATCH_S = {"ray": 2.0}
"""Target duration of a batch, seconds: far longer than submitting it."""
BATCH_S_ELSE = 0.5
PENDING_PER_WORKER = 4
"""Batches per worker that wait or run, which bounds the unread results."""


def check(executor) -> None:
    """Raises if there is no such executor, before anything is run or replaced."""
    if executor == "ray":
        import ray  # noqa: F401
    elif executor not in ("processes", "serial") and not hasattr(executor, "submit"):
        known = '"processes", "serial", "ray" or an executor of concurrent.futures'
        raise ValueError(f"there is no executor {executor!r}: write {known}")
    elif executor == "processes":
        _check_main()


def _check_main() -> None:
    """Raises if new processes, which import the main module, would get here again."""
    main = sys.modules.get("__main__")
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
    file = getattr(main, "__file__", None)
    if file is None or frame.f_globals is not vars(main):
        return
    try:
        source = Path(file).read_text(errors="replace")
    except OSError:
        return
    if "__name__" not in source:
        raise KneeError(
            f"{file} would run again in each new process: put its calls below "
            "if __name__ == '__main__':, or give executor='serial'"
        )


def drive(
    make: Make, given, tasks: list[Any], executor, workers: int | None, batch: int | None
) -> list[Any]:
    """Performs all runs: `make(given, some)` performs some of `tasks`. Returns what it
    returned, in the order of `tasks`."""
    check(executor)
    if not tasks:
        return []
    if executor == "serial":
        return make(given, tasks)
    begun = time.perf_counter()
    # The first run shows how long one takes, and reveals errors common to all.
    made = make(given, tasks[:1])
    took = time.perf_counter() - begun
    if batch is None:
        batch = max(1, int(BATCH_S.get(str(executor), BATCH_S_ELSE) / max(took, 1e-6)))
    rest = tasks[1:]
    batches = [rest[at : at + batch] for at in range(0, len(rest), batch)]
    if executor == "ray":
        results = _ray(make, given, batches, workers)
    elif executor == "processes":
        results = _processes(make, given, batches, workers)
    else:
        results = _pool(make, given, batches, executor, workers or _cpus())
    for number in range(len(batches)):
        made += results[number]
    return made


def _cpus() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _processes(make: Make, given, batches, workers: int | None) -> dict[int, list[Any]]:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    workers = min(workers or _cpus(), len(batches)) or 1
    # Forking a process with threads can hang.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        return _pool(make, given, batches, pool, workers)


def _pool(make: Make, given, batches, pool, workers: int) -> dict[int, list[Any]]:
    from concurrent.futures import FIRST_COMPLETED, wait

    waiting, pending, results = list(enumerate(batches))[::-1], {}, {}
    try:
        while waiting or pending:
            while waiting and len(pending) < PENDING_PER_WORKER * workers:
                number, tasks = waiting.pop()
                pending[pool.submit(make, given, tasks)] = number
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                results[pending.pop(future)] = future.result()
    except BaseException:
        for future in pending:
            future.cancel()
        raise
    return results


def _ray(make: Make, given, batches, workers: int | None) -> dict[int, list[Any]]:
    import ray

    if not ray.is_initialized():
        ray.init()
    remote = ray.remote(make)
    shared = ray.put(given)
    workers = workers or int(ray.cluster_resources().get("CPU", 1))
    waiting, pending, results = list(enumerate(batches))[::-1], {}, {}
    while waiting or pending:
        while waiting and len(pending) < PENDING_PER_WORKER * workers:
            number, tasks = waiting.pop()
            pending[remote.remote(shared, tasks)] = number
        done, _ = ray.wait(list(pending), num_returns=1)
        for reference in done:
            results[pending.pop(reference)] = ray.get(reference)
    return results
