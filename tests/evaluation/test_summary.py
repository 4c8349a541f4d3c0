"""What an evaluation comes to, against numbers computed by hand and against simulation."""

import math
from dataclasses import replace

import numpy as np
import pytest
from contestants import Script
from scipy.stats import binomtest

from ecomlab import Shop
from ecomlab.evaluation.contestant import Job, Usage
from ecomlab.evaluation.endpoint.settings import Prices
from ecomlab.evaluation.evaluation import Cells
from ecomlab.evaluation.summary import (
    Ledger,
    effective_count,
    flip_rate,
    pass_hat,
    share_interval,
    smallest_difference,
    summary_of,
)
from ecomlab.seeding import rng


def test_pass_k_by_hand() -> None:
    """Of 4 trials, 3 and 1 succeed: pass^2 is the mean of 3/6 and 0, pass^1 that of 3/4 and 1/4."""
    trials = [[1, 1, 1, 0], [0, 1, 0, 0]]
    assert [pass_hat(trials, k) for k in (1, 2, 3, 4)] == [0.5, 0.25, 0.125, 0.0]
    assert pass_hat([[1, 1], [1]], 2) == 1.0, "tasks with fewer trials are left out"
    assert math.isnan(pass_hat([[1]], 2))
    assert flip_rate([*trials, [1, 1], [0, 0], [1]]) == 0.5 and math.isnan(flip_rate([[1]]))


def test_pass_k_is_unbiased() -> None:
    """Tasks with success p, Beta distributed: pass^3 is the mean of p^3."""
    random = rng("test pass^k")
    p = random.beta(2, 1, 20_000)
    trials = [list((random.random(5) < share).astype(float)) for share in p]
    assert pass_hat(trials, 3) == pytest.approx((p**3).mean(), abs=0.01)


@pytest.mark.parametrize(("won", "n"), [(0, 20), (20, 20), (13, 20)])
def test_one_trial_a_task_has_the_exact_interval(won: int, n: int) -> None:
    exact = binomtest(won, n).proportion_ci(method="exact")
    assert share_interval([[1.0]] * won + [[0.0]] * (n - won)) == pytest.approx((exact.low, exact.high))


def test_trials_of_a_task_count_as_much_as_they_tell() -> None:
    assert effective_count([[1, 1, 1, 1]] * 10 + [[0, 0, 0, 0]] * 10) == 20, "trials that always agree"
    assert effective_count([[1, 0, 1, 0]] * 20) == 80, "tasks that are all alike"
    assert math.isnan(share_interval([])[0])


def test_intervals_of_several_trials_cover() -> None:
    """Tasks that differ in difficulty, played three times: the interval holds the mean in 93 to 99% of 600 samples."""
    random, covered = rng("test coverage"), 0
    for _ in range(600):
        shares = random.beta(1.2, 0.6, 60)
        low, high = share_interval([list((random.random(3) < p).astype(float)) for p in shares])
        covered += low <= 1.2 / 1.8 <= high
    assert 0.93 <= covered / 600 <= 0.99


def test_the_smallest_difference_is_what_a_sample_shows_four_times_in_five() -> None:
    n, p = 200, 0.5
    gap = smallest_difference(n, p)
    random = rng("test power")
    one, two = random.binomial(n, p - gap / 2, 20_000), random.binomial(n, p + gap / 2, 20_000)
    pooled = (one + two) / (2 * n)
    z = (two - one) / n / np.sqrt(2 * pooled * (1 - pooled) / n)
    assert (np.abs(z) > 1.96).mean() == pytest.approx(0.8, abs=0.02)
    assert math.isnan(smallest_difference(0)) and smallest_difference(1) == 1.0


def test_a_report_counts_unscored_episodes_twice_over(shop: Shop) -> None:
    """Once left out, once as failures; and every class of mistake."""
    cells = Cells(("STATUS", "POLICY"), (0, 1), 4, trials=2)
    contestant = Script(fails=lambda job: "time-out" if job.d and job.trial else "")
    found = summary_of(contestant.play(cells.jobs(), shop), trials=2)
    assert [(row["env"], row["d"], row["episodes"], row["tasks"]) for row in found["cells"]] == [
        (env, d, 8, 4) for env in ("STATUS", "POLICY") for d in (0, 1)
    ]
    assert [row["env"] for row in found["environments"]] == ["STATUS", "POLICY"]
    whole = found["all"]
    assert (whole["success"], whole["success_of_all"], whole["unscored"]) == (1.0, 0.75, {"time-out": 8})
    assert whole["pass_k"] == [1.0, 1.0] and whole["flips"] == 0.0 and whole["ends"] == {"submit": 24}
    assert whole["reward_task"] == 1.0 and whole["reward"] == pytest.approx(0.9)
    assert math.isnan(found["cells"][1]["pass_k"][1]), "no task of that cell has two scored trials"
    assert whole["tokens"] == 10 and whole["prompt_tokens"] == 100


def test_the_ledger_has_the_price_of_everything_played(shop: Shop) -> None:
    """100 prompt tokens, 40 of them cached, and 10 sampled: 60 x 2 + 40 x 0.5 + 10 x 8 dollars a million."""
    (played,) = Script().play([Job("STATUS", 0, 2**31)], shop)
    ledger, free = Ledger({"agent": Prices(input=2, cached=0.5, output=8)}), Ledger()
    for _ in range(3000):
        ledger.add(played)
    assert ledger.cost == "0.66 USD"
    assert (ledger.to_json()["agent"]["prompt_tokens"], ledger.to_json()["agent"]["cost"]) == (300_000, 0.66)
    silent = replace(played, usage={"agent": Usage(requests=3)})
    untold = Ledger(ledger.prices)
    untold.add(silent)
    assert untold.cost == "" and "cost" not in untold.to_json()["agent"], "no tokens told is not free"
    assert math.isnan(summary_of([silent])["all"]["tokens"])
    free.add(played)
    assert free.cost == "" and "cost" not in free.to_json()["agent"]
