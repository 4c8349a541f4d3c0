"""Check new frames and write them into the bank: `python experiments/utterances/check.py FRAMES.jsonl ...`.

A line of a file is {"act": ..., "env": ..., "register": ..., "text": ...}; acts, their gaps and how many frames each
needs stand in inventory.toml. A frame that fails is dropped, and the reason is printed.
`--dry-run` writes nothing.
"""

import argparse
import json
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ecomlab.catalog import load_shop
from ecomlab.catalog.lexicon import lexicon_of
from ecomlab.customer import nlu
from ecomlab.customer.fillers import is_courtesy, telling
from ecomlab.customer.templates import Phrases, common_file
from ecomlab.customer.utterances import FACTS, FILE, Bank, Utterance, frames_of, grouped, read_bank
from ecomlab.envs.registry import ENVIRONMENTS

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from round_trip import fault, same_words

INVENTORY = Path(__file__).with_name("inventory.toml")
ENVS = [env for env in ENVIRONMENTS if env != "JOURNEY"]
TELLING = ("RETURN", "STATUS", "POLICY")
"""Environments whose customers tell facts."""
MOST_WORDS = 24
_TEXT = re.compile(r"""(?:"\{seen\}"|[A-Z{\["])[A-Za-z0-9{}\[\]"',;:.!? -]*[.!?:]""")
_GREETING = re.compile(r"[A-Z][A-Za-z', ]*[.!,]")
_ROUNDS = ((0.0, 1), (0.0, 3), (1.0, 1), (1.0, 3))
"""(share of noise, number of items) of the trials of a frame."""


class Checker:
    """Takes frames one by one, and says why one is refused."""

    def __init__(self) -> None:
        with INVENTORY.open("rb") as file:
            self.acts = {(one["name"], one.get("for", "")): one for one in tomllib.load(file)["act"]}
        self.telling = {kind for kinds in common_file().effects.values() for kind in kinds}
        self.telling |= {name for name, _ in self.acts if name.startswith("slot ")}
        self.heard = {telling(text): kind for kind, some in common_file().heard.items() for text in some}
        self.shop = load_shop()
        self.lexicon = lexicon_of(self.shop.catalog)
        types = [name for kind in self.lexicon.types.values() for name in (kind.name, kind.plural)]
        self.sold = re.compile(rf"\b(?:{'|'.join(map(re.escape, types))})\b", re.IGNORECASE)

    def envs(self, act: str, env: str) -> list[str]:
        """List the environments in which such a frame is said."""
        if env == FACTS:
            return [name for name in TELLING if (act, name) not in self.acts]
        if env:
            return [env]
        own = {name for other, name in self.acts if other == act}
        return [name for name in ENVS if name not in own and not (FACTS in own and name in TELLING)]

    def badly_formed(self, frame: Utterance) -> str:
        """Find what is wrong with a frame by itself; "" if nothing is."""
        entry = self.acts.get((frame.act, frame.env))
        if entry is None:
            return "no such act of this environment"
        gaps = entry.get("gaps", "").split()
        needed = {gap.strip("{}") for gap in gaps if not gap.endswith("?")}
        allowed = {gap.strip("{}?") for gap in gaps}
        fields = [text for run, text in frame.form.runs if run == "field"]
        if not needed <= set(fields) <= allowed or len(set(fields)) < len(fields):
            return f"gaps must be {' '.join(gaps) or 'none'}"
        opening = frame.act.startswith("opening")
        text = _GREETING if frame.act == "opening greeting" else _TEXT
        if frame.act == "opening list" and not frame.text.endswith(": {items}."):
            return "does not end with a list"
        if not text.fullmatch(frame.text) or re.search(
            r"\.\.|  | [-.,;:!?]|[.!?][A-Za-z]|[.!?] [a-z]", frame.text
        ):
            return "not written as a frame is"
        if frame.text.endswith(":") != (frame.act in ("before mention", "before remind")):
            return "ends with the wrong mark"
        if '"' in frame.text and '"{seen}"' not in frame.text:
            return "quotation marks"
        literal = frame.form.literal
        if sold := self.sold.search(literal):
            return f"names {sold.group()}"
        if any(map(str.isdigit, literal)):
            return "names a number"
        if opening:
            return ""
        if self.heard.get(frame.form.telling, frame.act) != frame.act:
            return f"its words are heard as {self.heard[frame.form.telling]}"
        if fields and is_courtesy(literal):
            return "says nothing around its gap"
        few = len(literal.split()) < 4 and not (frame.form.telling or '"' in literal)
        if fields and few and frame.act not in self.telling:
            return "says so little around its gap that any sentence would be read as it"
        if len(literal.split()) > MOST_WORDS:
            return "too long"
        if bool(re.search(r"\[", frame.text)) and "cues" not in entry:
            return "cues in an act without"
        return ""


def phrases_with(bank: Bank) -> dict[str, Phrases]:
    """Copy the phrases of every environment, with the frames of another bank."""
    return {env: ENVIRONMENTS[env].phrases.speaking(frames_of(env, env in TELLING, bank)) for env in ENVS}


def places(frame: Utterance, checker: Checker) -> list[tuple[str, str, str]]:
    """List the places that no two frames may share: words in an environment, among acts or of one slot or lead-in."""
    among = frame.act if frame.act.startswith(("before ", "slot ", "opening")) else "acts"
    return [(env, among, same_words(frame.form)) for env in checker.envs(frame.act, frame.env)]


def unheld(line: Utterance) -> Utterance:
    """A line of the bank as a frame of a file is: whichever half it stands in."""
    return line.model_copy(update={"held": False})


def named(frame: Utterance) -> str:
    """Name a frame as `fault` takes it: the slot's name alone, whatever value or repetition its sentences are of."""
    words = frame.act.split()
    if frame.act == "opening":
        return "opening default"
    return " ".join(words[:2]) if words[0] == "slot" else frame.act


def faults(
    frames: Iterable[Utterance], checker: Checker, made: Mapping[str, Phrases]
) -> Iterator[tuple[Utterance, str]]:
    """Say every frame with real slots wherever customers say it, and yield those that are misread."""
    for frame in frames:
        for number, env in enumerate(checker.envs(frame.act, frame.env)):
            if env == "JOURNEY":
                why = journey(frame, made["CART"], checker)
            else:
                trials = _ROUNDS if number == 0 else _ROUNDS[:1]
                tried = (fault(named(frame), frame.form, made[env], checker.shop, *trial) for trial in trials)
                why = next((why for why in tried if why), "")
            if why:
                yield frame, f"{env}: {why}"
                break


def journey(frame: Utterance, phrases: Phrases, checker: Checker) -> str:
    """Find out whether a transition between jobs would be heard as anything."""
    text = frame.text.replace("{seen}", "my shopping list")
    kinds = {one.kind for one in nlu.read_acts(text, phrases, checker.lexicon)}
    bad = kinds & {"nothing", "more", "quit", "no", "not this one"} or nlu.read_slots(
        text, phrases, checker.lexicon
    )
    return f"read as {bad}" if bad or nlu.read_message(text, phrases, checker.lexicon) else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--dry-run", action="store_true")
    options = parser.parse_args()
    checker = Checker()
    old = {unheld(one): one.held for one in read_bank()}
    kept: dict[Utterance, None] = dict.fromkeys(old)
    refused: list[tuple[str, Utterance, str]] = []
    words: dict[tuple[str, str, str], Utterance] = {}
    for frame in old:
        words |= dict.fromkeys(places(frame, checker), frame)
    for file in options.files:
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            place = f"{file.name}:{number}"
            try:
                frame = Utterance.model_validate(json.loads(line) | {"held": False})
            except (ValueError, TypeError) as error:
                print(f"{place}: no frame: {error}")
                continue
            if frame in kept:
                continue
            why = checker.badly_formed(frame)
            keys = [] if why else places(frame, checker)
            same = next((words[key] for key in keys if key in words), None)
            if same:
                why = f"same words as {same.act}: {same.text}"
            if why:
                refused.append((place, frame, why))
                continue
            words |= dict.fromkeys(keys, frame)
            kept[frame] = None
    # A frame may take over another one's reading: new ones that do go, until everything is read as it is meant.
    suspects = list(kept)
    while suspects:
        bad = list(faults(suspects, checker, phrases_with(grouped(kept))))
        gone = [(frame, why) for frame, why in bad if frame not in old] or bad
        for frame, why in gone:
            del kept[frame]
            refused.append(("the bank:" if frame in old else "", frame, why))
        suspects = [frame for frame, _ in bad if frame in kept]
    made = phrases_with(grouped(kept))
    for frame in [frame for frame in kept if frame not in old and apart(frame, checker, made)]:
        del kept[frame]
        refused.append(("", frame, "its sentences are frames of other acts"))
    for place, frame, why in refused:
        print(f"{place} {frame.act} {frame.env} [{frame.register_}] {frame.text}: {why}".strip())
    lines = halved(kept, old)
    table(kept, checker)
    print(
        f"{len(refused)} refused, {len(kept)} frames, {sum(frame not in old for frame in kept)} of them new"
    )
    if not options.dry_run:
        FILE.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


def apart(frame: Utterance, checker: Checker, made: Mapping[str, Phrases]) -> bool:
    """Tell whether a frame of several sentences would be the same text as two frames in a row."""
    if (
        frame.act.startswith(("slot", "before", "opening"))
        or frame.env == "JOURNEY"
        or not re.search(r"[.!?] ", frame.text)
    ):
        return False
    phrases = made[checker.envs(frame.act, frame.env)[0]]
    sentence = re.split(r"(?<=[.!?]) ", frame.form.open)[0].lower()
    return "{" not in sentence and any(
        form.literal.lower() == sentence for some in phrases.acts.values() for form in some if not form.fields
    )


def halved(kept: Iterable[Utterance], old: Mapping[Utterance, bool]) -> list[dict[str, object]]:
    """Hold out half of the frames of each act, environment and register; those of the bank stay where they are."""
    groups: dict[tuple[str, str, str], list[Utterance]] = defaultdict(list)
    for frame in kept:
        groups[frame.act, frame.env, frame.register_].append(frame)
    lines: list[dict[str, object]] = []
    sides: Counter[tuple[str, str, bool]] = Counter((f.act, f.env, held) for f, held in old.items())
    for (act, env, register), some in sorted(groups.items()):
        mine = Counter(old[frame] for frame in some if frame in old)
        for frame in sorted(some, key=lambda frame: frame.text):
            held = old.get(frame)
            if held is None:
                held = (mine[True], sides[act, env, True]) < (mine[False], sides[act, env, False])
                mine[held] += 1
                sides[act, env, held] += 1
            lines.append({"act": act, "env": env, "register": register, "text": frame.text, "held": held})
    return lines


def table(kept: Iterable[Utterance], checker: Checker) -> None:
    """Print acts that have fewer frames than they need."""
    counts = Counter((frame.act, frame.env) for frame in kept)
    for key, entry in checker.acts.items():
        if counts[key] < entry["wanted"]:
            print(f"{key[0]} {key[1]}: {counts[key]} of {entry['wanted']}")


if __name__ == "__main__":
    main()
