"""Run the study as it was registered: from a worktree at the commit that added REGISTERED.md.

    python experiments/frontier/registered.py [--dry-run] [--only PART]

The worktree lies in runs/ and is kept. Results go to results/ of this clone, whatever it has become since. Without
arguments, the runs that were registered later follow, fresh seeds and recovery, with the code of this clone.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PLACE = HERE / "runs/registered"


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit() -> str:
    """Find the commit that added REGISTERED.md; exits if there is none."""
    path = str((HERE / "REGISTERED.md").relative_to(ROOT))
    found = git("log", "--no-renames", "--diff-filter=A", "--format=%H", "--", path)
    if not found:
        sys.exit(f"{path} is not committed: nothing is registered yet")
    return found.splitlines()[-1]


def main() -> None:
    wanted = commit()
    if not (PLACE / ".git").exists():
        git("worktree", "prune")
        git("worktree", "add", "--detach", str(PLACE), wanted)
    there = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=PLACE, check=True, capture_output=True, text=True
    )
    if there.stdout.strip() != wanted:
        sys.exit(f"{PLACE} is at another commit than {wanted}, which registered the study; delete it")
    script = PLACE / HERE.relative_to(ROOT) / "study.py"
    folders = ["--results", str(HERE / "results"), "--work", str(HERE / "runs")]
    here = {**os.environ, "PYTHONPATH": str(PLACE), "OMP_NUM_THREADS": "1"}
    command = ["nice", "-n", "10", sys.executable]
    code = subprocess.run([*command, str(script), *folders, *sys.argv[1:]], cwd=PLACE, env=here).returncode
    here["PYTHONPATH"] = str(ROOT)
    for later in () if sys.argv[1:] else ("fresh", "recovery"):
        code = (
            code or subprocess.run([*command, str(HERE / "study.py"), later], cwd=ROOT, env=here).returncode
        )
    sys.exit(code)


if __name__ == "__main__":
    main()
