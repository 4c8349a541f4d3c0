"""Transcripts: lossless as lines; a torn end is cut off, a damaged middle is named."""

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from contestants import Script

from ecomlab import Shop
from ecomlab.evaluation import transcripts
from ecomlab.evaluation.contestant import Job
from ecomlab.evaluation.tasks import held_out_seeds
from ecomlab.evaluation.transcript import Transcript, flat
from ecomlab.evaluation.transcripts import FILE, TranscriptError, opened, read, read_header, write

HEADER = {"kind": "evaluation", "player": "script", "levels": [0, 1]}
MADE = {"commit": "abc", "libraries": {"numpy": "2"}}


@pytest.fixture(scope="module")
def made(shop: Shop) -> list[Transcript]:
    """A right, a wrong, an unscored episode, and one whose task could not be drawn."""
    seed = held_out_seeds(0, 1)[0]
    jobs = [
        Job("CART", 2, seed),
        Job("CART", 2, seed + 1, axes={"p_missing": 0.0}),
        Job("RETURN", 0, seed, trial=1),
    ]
    contestant = Script(rate=0.3, fails=lambda job: "rate limit" if job.trial else "")
    found = [replace(played, elapsed=0.5) for played in contestant.play(jobs, shop)]
    return [
        *found,
        Transcript.of(Job("PD", 1, seed), None, faults=("malformed call",), unscored="task"),
    ]


def same(one: list[Transcript], two: list[Transcript]) -> bool:
    """Whether they are equal, NaN included, in every field."""
    written = [[json.dumps(asdict(t), sort_keys=True) for t in several] for several in (one, two)]
    return written[0] == written[1]


def test_what_is_unscored_for_any_reason_has_no_reward(made: list[Transcript]) -> None:
    assert [t.unscored for t in made] == ["", "", "rate limit", "task"]
    for transcript in made[2:]:
        assert transcript.score.unscored and math.isnan(transcript.score.value)
        assert math.isnan(flat(transcript)["correct"]) and math.isnan(flat(transcript)["turns"])


def test_lines_are_lossless(made: list[Transcript], tmp_path: Path) -> None:
    write(tmp_path / FILE, HEADER, made)
    assert same(list(read(tmp_path)), made) and read_header(tmp_path) == {"format": 1, **HEADER}
    for line in (tmp_path / FILE).read_text().splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_a_torn_last_line_is_cut_off_and_its_episode_can_be_added(
    made: list[Transcript], tmp_path: Path
) -> None:
    with opened(tmp_path, HEADER, MADE) as log:
        for transcript in made[:2]:
            log.add(transcript)
    path = tmp_path / FILE
    whole = path.read_bytes()
    for cut in (1, 40):
        path.write_bytes(whole[:-cut])
        assert same(list(read(path)), made[:1])
        with opened(tmp_path, HEADER, MADE) as log:
            assert log.scored == {made[0].key}
            log.add(made[1])
        assert path.read_bytes() == whole


def test_an_episode_counts_once(made: list[Transcript], tmp_path: Path) -> None:
    retried = replace(made[0], job=made[2].job)
    with opened(tmp_path, HEADER, MADE) as log:
        log.add(made[0])
        with pytest.raises(TranscriptError, match="has a score already"):
            log.add(made[0])
        log.add(made[2])
        assert log.unscored == {made[2].key}
        log.add(retried)
        assert not log.unscored
    assert same(list(read(tmp_path)), [made[0], retried])
    assert len(list(read(tmp_path, every=True))) == 3
    with opened(tmp_path, HEADER, MADE) as log:
        assert log.scored == {made[0].key, retried.key} and not log.unscored


def test_another_run_is_refused_with_everything_that_differs(tmp_path: Path) -> None:
    with opened(tmp_path, HEADER, MADE):
        pass
    other = {**HEADER, "player": "renamed", "kind": "other", "levels": [2]}
    differs = r'kind is "evaluation" there, "other" now; levels is \[0, 1\] there, \[2\] now; .*--out'
    with pytest.raises(TranscriptError, match=differs), opened(tmp_path, other, MADE):
        pass


def test_other_software_continues_a_run_and_is_noted(tmp_path: Path) -> None:
    for commit in ("abc", "abc", "def", "def"):
        with opened(tmp_path, HEADER, {"commit": commit}):
            pass
    kinds = [(kind, value.get("made_with")) for kind, value in transcripts.lines(tmp_path / FILE)]
    assert kinds == [("header", {"commit": "abc"}), ("continued", {"commit": "def"})]


def test_only_one_process_writes(tmp_path: Path) -> None:
    refused = pytest.raises(TranscriptError, match="another process")
    with opened(tmp_path, HEADER, MADE), refused, opened(tmp_path, HEADER, MADE):
        pass


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense\n", "line 1 .*no file of transcripts"),
        ('{"header": {"format": 1}}\n{"episode"\n', "line 2 .*delete it"),
        ('{"header": {"format": 1}}\n{"header": {"format": 1}}\n', "line 2 is damaged"),
        ('{"header": {"format": 9}}\n', "format 9"),
        ('{"header": {"format": 1}}\n{"episode": {"job": 3}}\n', "line 2 is damaged"),
    ],
)
def test_a_damaged_file_is_named_by_its_line(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(TranscriptError, match=words):
        list(read(tmp_path))
