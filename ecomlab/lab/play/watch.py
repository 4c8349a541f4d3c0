"""The command `play`: a person in the seat, or an episode of any other player."""

from pathlib import Path

from rich.console import Console
from rich.markup import escape

from ecomlab.customer.llm import Chat
from ecomlab.envs.registry import ENVIRONMENTS
from ecomlab.episode.play import play
from ecomlab.episode.record import Trajectory
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.evaluation import trajectory_of
from ecomlab.files import write_json
from ecomlab.lab.paths import check_writable, resolve
from ecomlab.lab.play.choice import Choice
from ecomlab.lab.play.seat import PLAYER, RUNS, Seat
from ecomlab.lab.play.terminal import sit
from ecomlab.lab.truth import score_in_lines
from ecomlab.markup.entries import as_text, conversation


def show(
    choice: Choice,
    player: str,
    console: Console,
    customer: Chat | None = None,
    out: Path | None = None,
    json_file: Path | None = None,
) -> int:
    """Let a person play, or print the episode of another player, named as for `ecomlab eval`. Returns the exit code.
    An episode that came to its end is written to `json_file` too.

    Raises ValueError for a choice that does not exist, and for a player that is nothing.
    """
    if player == PLAYER:
        check_writable(resolve(out or RUNS))  # before an hour's play, not after it
        seat = Seat(customer)
        seat.reset(choice)
        code = sit(seat, console, console.input if console.is_terminal else input, out or RUNS)
        if seat.done and json_file:
            write_episode(seat.outcome.trajectory, json_file)
        return code
    task = choice.task()
    if player == "reference":
        script = ENVIRONMENTS[choice.env].reference_player(choice.shop)
        made = play(script, task, choice.shop, customer=customer)
    else:
        from ecomlab.evaluation.players import Playing, contestant_of  # models and endpoints

        contestant = contestant_of(player, choice.shop, [choice.env], Playing(customer=customer))
        job = Job(choice.env, choice.difficulty, choice.seed, axes=choice.axes)
        (played,) = contestant.play([job], choice.shop)
        if not played.messages:
            console.print(escape(f"unscored: {played.unscored}; {played.notes}"), soft_wrap=True)
            return 1
        made = trajectory_of(played, choice.shop)
    budgets = f"at most {task.turns} messages and {task.calls} calls"
    text = "\n".join([as_text(conversation(made.messages[1:])), "", "\n  ".join(score_in_lines(made.score))])
    console.print(f"[bold]{task.title}[/bold]: {budgets}\n\n{escape(text)}", soft_wrap=True)
    if json_file:
        write_episode(made, json_file)
    return 1 if made.score.unscored else 0


def write_episode(episode: Trajectory, path: Path) -> None:
    """Write an episode as JSON: task, messages, end and score, whose value is null where it is unscored."""
    score = episode.score
    value = None if score.unscored else score.value
    verdict = {"value": value, "correct": score.correct, "parts": dict(score.parts), "why": score.why}
    told = {"task": episode.task.to_json(), "messages": episode.messages, "end": episode.end}
    write_json(path, {**told, "score": verdict})
