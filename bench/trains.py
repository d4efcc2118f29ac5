# SPDX-License-Identifier: MIT
"""Times of calls on a GPU, for the scripts beside this one: of trains of launches, in turns. The GPU is held back while a train is enqueued, so
that none of it waits for the CPU, which takes longer for a small product than the GPU does.
"""
import statistics

import torch

WARM, MOST = 4, 50  # launches: of the first train, which is not counted, and of the longest one
TRAIN_US = 600  # what a train should take
HOLD = 60_000  # clocks that the GPU waits for each launch at first: 30 us


def train_us(run, launches):
    """Microseconds of a launch in a train on the current stream. A train that began before it was complete is enqueued again, behind a longer wait."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    hold = HOLD * launches
    while True:
        torch.cuda.synchronize()
        torch.cuda._sleep(hold)
        begin.record()
        for _ in range(launches):
            run()
        end.record()
        was_held = not begin.query()
        end.synchronize()
        if was_held:
            return begin.elapsed_time(end) * 1000 / launches
        hold *= 2


def medians_us(runs, turns=5):
    """The median for each of `runs`, a dictionary of functions, which take turns."""
    launches = {name: max(2, min(MOST, int(TRAIN_US / train_us(run, WARM)))) for name, run in runs.items()}
    times = {name: [] for name in runs}
    for _ in range(turns):
        for name, run in runs.items():
            times[name].append(train_us(run, launches[name]))
    return {name: statistics.median(us) for name, us in times.items()}
