"""One evaluated task of *novice*, alone, beside its level, and beside all levels: what a batch does to an episode.

python experiments/quick/batches.py
"""

from ecomlab import load_shop
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.local import play_jobs
from ecomlab.evaluation.tasks import held_out_seeds
from ecomlab.models.load import load_policy

LEVELS, TASKS = (0, 1, 2, 3), 64
"""The evaluation of sweep.toml."""
ONE = Job("CART", 2, 2_147_483_706)


def main() -> None:
    """Print turns, sampled tokens and reward of the task in each batch."""
    shop = load_shop()
    policy = load_policy("novice", shop, ["CART"])
    jobs = [Job("CART", d, seed) for d in LEVELS for seed in held_out_seeds(0, TASKS)]
    batches = {"alone": [ONE], "its level": [job for job in jobs if job.d == ONE.d], "all levels": jobs}
    for name, batch in batches.items():
        played = play_jobs(policy, batch, shop, policy.sampler(greedy=False))
        one = next(rollout for job, rollout in played if job == ONE)
        print(f"{name}: {one.turns} turns, {one.sampled} tokens, reward {one.score.value}")


if __name__ == "__main__":
    main()
