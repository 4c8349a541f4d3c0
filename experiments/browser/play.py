"""A person's way through start_02_play, in a real browser: JupyterLab under Debian's Chromium, driven by Playwright.

`make browser` runs it. CART, STATUS and RETURN are played to `correct`, a cart wrongly; what the page shows is compared
with a second seat after every message. It ends with a line BROWSER RUN or BROWSER NOT RUN, and why.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from hands import WORDS, entries_of, moves  # noqa: E402
from PIL import Image  # noqa: E402
from playwright.sync_api import Error as PlaywrightError  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402

from ecomlab.evaluation.evaluation import rescore  # noqa: E402
from ecomlab.lab.play.choice import Choice  # noqa: E402
from ecomlab.lab.play.seat import Seat  # noqa: E402

SIZE = 1_000
PATHS = (
    Choice("CART", 2, 3, catalog=SIZE),
    Choice("STATUS", 4, 1, catalog=SIZE),
    Choice("RETURN", 3, 11, catalog=SIZE),
)
CHROMIUM = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
LAB = (
    "--no-browser --allow-root --ip=127.0.0.1 --port-retries=0 --LabApp.news_url=None "
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate --LabApp.expose_app_in_browser=True"
).split()
WIDTH, HEIGHT = 1280, 1800
LONG = 120_000
"""Milliseconds to wait for a page or a kernel on a busy machine."""


@contextlib.contextmanager
def lab(folder: Path) -> Iterator[str]:
    """Serve the notebook from `folder`; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = {
        name: str(folder / name.lower())
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    }
    work = folder / "work"
    work.mkdir()
    shutil.copy(ROOT / "notebooks" / "start_02_play.ipynb", work)
    text = (work / "start_02_play.ipynb").read_text("utf-8")
    text = text.replace("catalog_size: int = 20_000", f"catalog_size: int = {SIZE}")
    (work / "start_02_play.ipynb").write_text(
        text.replace("experiments/runs/play", str(folder / "saved")), "utf-8"
    )
    import jupyterlab

    # The widgets' extension lies with JupyterLab, which may be in another environment than Playwright.
    home["JUPYTER_PATH"] = str(Path(jupyterlab.__file__).parents[4] / "share" / "jupyter")
    home["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "jupyterlab", *LAB, f"--port={port}", f"--ServerApp.root_dir={work}",
               "--IdentityProvider.token=seat", "--LanguageServerManager.autodetect=False"]  # fmt: skip
    with (folder / "lab.log").open("w") as log:
        server = subprocess.Popen(command, env={**os.environ, **home}, stdout=log, stderr=log)
        try:
            yield f"http://127.0.0.1:{port}/lab/tree/start_02_play.ipynb?token=seat"
        finally:
            server.terminate()
            server.wait(30)


SAID: list[str] = []


def say(text: str) -> None:
    """Print a line of the log, which is written beside the pictures too."""
    SAID.append(text)
    print(text, flush=True)


class Page:
    """The seat as it is on the page."""

    def __init__(self, page: Any, out: Path) -> None:
        self.page, self.out, self.checks = page, out, 0
        self.desk = page.locator(".ecomlab-desk")

    def open(self, address: str) -> None:
        """Open the notebook and run it to its end."""
        deadline = time.monotonic() + LONG / 1000
        while True:
            try:
                self.page.goto(address, timeout=LONG)
                break
            except Exception:  # the server is not there yet
                if time.monotonic() > deadline:
                    raise
                time.sleep(1)
        self.page.wait_for_function("() => window.jupyterapp", timeout=LONG)
        self.page.evaluate("async () => { await window.jupyterapp.restored }")
        self.page.wait_for_function(
            "() => window.jupyterapp.shell.currentWidget?.sessionContext", timeout=LONG
        )
        self.page.evaluate(
            """async () => {
                const panel = window.jupyterapp.shell.currentWidget;
                await panel.context.ready; await panel.sessionContext.ready;
                await panel.sessionContext.session.kernel.info;
                await window.jupyterapp.commands.execute('notebook:run-all-cells');
                window.jupyterapp.commands.execute('application:toggle-left-area');
            }"""
        )
        self.desk.wait_for(timeout=LONG)
        self.desk.scroll_into_view_if_needed()

    def check(self, what: str, holds: bool) -> None:
        """Note a check. Raises AssertionError where it does not hold."""
        assert holds, what
        self.checks += 1
        say(f"  ok: {what}")

    def shot(self, name: str) -> None:
        """Take a picture of the seat."""
        self.page.wait_for_timeout(300)
        path = self.out / f"{name}.png"
        self.desk.screenshot(path=path)
        Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)  # a third of the size

    def field(self, label: str) -> Any:
        return self.desk.get_by_label(label, exact=True)

    def press(self, button: str) -> None:
        self.desk.get_by_role("button", name=button, exact=True).click()

    def shows(self, text: str) -> None:
        """Wait until the seat shows a text."""
        self.desk.get_by_text(text).first.wait_for(timeout=LONG)

    def begin(self, choice: Choice) -> Seat:
        """Choose by the fields and reset; a second seat with the same episode."""
        self.field("environment").select_option(choice.env)
        for label, value in (("difficulty", choice.difficulty), ("seed", choice.seed)):
            self.write(self.field(label), str(value))
        self.press("Reset")
        mirror = Seat()
        mirror.reset(choice)
        self.page.wait_for_function(
            "key => [...document.querySelectorAll('.ecomlab-desk input')].some(i => i.value === key)",
            arg=mirror.key,
            timeout=LONG,
        )
        self.same(mirror)
        return mirror

    def same(self, mirror: Seat) -> None:
        """Wait until the page shows what the second seat has: the last message, the budgets, the customer's words."""
        if number := mirror.log[-1].number:
            self.desk.locator(".ecomlab-talk").get_by_text(f"turn {number}", exact=True).wait_for()
        left = mirror.left
        for number, most in ((left.messages, left.of_messages), (left.calls, left.of_calls)):
            self.shows(f"{number} of {most}")
        said = [entry.text for entry in mirror.log if entry.who == "customer"]
        self.page.wait_for_function(  # by its class, because a reset may replace the node
            "text => [...document.querySelectorAll('.ecomlab-desk .ecomlab-customer')]"
            ".some(node => node.innerText.replace(/\\s+/g, ' ').includes(text))",
            arg=" ".join(said[-1].split()),
            timeout=LONG,
        )

    def enter(self, tool: str, entries: dict[str, str]) -> Any:
        """Fill in a form, by the keyboard; ids by the cards that show them. The last field, to press Enter in."""
        self.field("tool").select_option(tool)
        form = self.desk.locator(f".ecomlab-form-{tool}")
        form.wait_for()
        self.press("Clear")
        self.page.wait_for_function(  # else a field that is not empty yet may pass for filled in
            "form => [...form.querySelectorAll('input[type=text]')].every(field => field.value === '')",
            arg=form.element_handle(),
            timeout=LONG,
        )
        last = None
        for name, entry in entries.items():
            label = re.compile(rf"^{name.replace('_', ' ')}( \*)?$")
            field = form.get_by_label(label)
            if field.evaluate("node => node.tagName") == "SELECT":
                field.select_option(entry)
                continue
            if not self.picked(field, name, entry):
                self.write(field, entry)
            last = field
        return last

    def write(self, field: Any, text: str) -> None:
        """Type a text and look whether it stands there, as people do: a busy JupyterLab may take the focus away."""
        for _ in range(3):
            field.fill("")
            field.press_sequentially(text)
            if field.input_value() == text:
                return field.press("Tab")
        raise AssertionError(f"{text!r} cannot be typed")

    def picked(self, field: Any, name: str, entry: str) -> bool:
        """Enter an id by a card's button, if one shows it."""
        button = self.desk.locator(f'button[title*="{entry}"]')
        if not name.endswith("_id") or not button.count():
            return False
        button.first.focus()
        self.page.keyboard.press("Enter")
        self.page.wait_for_function(
            "([node, id]) => node.value === id", arg=[field.element_handle(), entry], timeout=LONG
        )
        return True

    def follow(self, mirror: Seat) -> None:
        """Play as a person who thinks as the reference player does."""
        for calls in moves(mirror):
            if [tool for tool, _ in calls] in (["ask_user"], [WORDS]):
                words = self.field("write to the customer, Enter sends")
                words.press_sequentially(calls[0][1]["question"])
                words.press("Enter")
                mirror.say(calls[0][1]["question"])
            else:
                for number, (tool, arguments) in enumerate(calls):
                    entries = entries_of(arguments)
                    last = self.enter(tool, entries)
                    mirror.add(tool, entries)
                    if number < len(calls) - 1:
                        self.press("Add to the message")
                        self.shows("These calls wait")
                    elif last is None:
                        self.press("Call")
                    else:
                        last.press("Enter")
                mirror.send()
            self.same(mirror)
            say(f"  {', '.join(tool for tool, _ in calls)}: {mirror.left}")


def right(page: Page, choice: Choice) -> None:
    """Play to `correct` and save."""
    say(f"{choice.env}, d = {choice.difficulty}, seed {choice.seed}: a person's path to correct")
    mirror = page.begin(choice)
    page.shot(f"{choice.env.lower()}_opens")
    page.follow(mirror)
    score = mirror.outcome.trajectory.score
    page.shows(f"correct, reward {score.value:.3f} of at most 0.900")
    page.check(f"the page says correct, reward {score.value:.3f}", score.correct)
    row = page.desk.locator(".ecomlab-outcome tbody tr").first.inner_text().split()
    page.check(
        f"r_task on the page: {' '.join(row)}", row[:2] == ["task", "1.000"] and score.parts["task"] == 1.0
    )
    page.press("Save the episode")
    page.shows("saved in")
    saved = re.search(r"--rescore (\S+)", page.desk.get_by_text("saved in").first.inner_text())
    folder = Path(saved[1]) if saved else Path()
    page.check("the saved episode scores again as it was", list(rescore(folder, choice.shop)) == [None])
    page.shot(f"{choice.env.lower()}_correct")


def wrong(page: Page, choice: Choice) -> None:
    """Shop carelessly: a form with mistakes, the first hit five times, and hand in."""
    say(f"{choice.env}, d = {choice.difficulty}, seed {choice.seed}: a wrong path")
    mirror = page.begin(choice)
    page.field("tool").select_option("cart_add")
    page.desk.locator(".ecomlab-form-cart_add").wait_for()
    page.field("quantity").fill("many")
    page.field("quantity").press("Enter")
    page.shows("is needed")
    page.same(mirror)
    page.check(
        "what is wrong stands below the form, and nothing was spent",
        mirror.left.messages == mirror.left.of_messages,
    )
    page.shot("mistakes_in_place")
    for tool, entries in (
        ("catalog_search", {"query": mirror.episode.task.opening}),
        ("cart_add", {"quantity": "5"}),
        ("submit", {}),
        ("submit", {}),
    ):
        if mirror.done:
            break
        if tool == "cart_add":
            card = next(c for entry in mirror.log if entry.result for c in entry.result.cards if not c.marks)
            entries = {"product_id": card.ids["product_id"], **entries}
        last = page.enter(tool, entries)
        last.press("Enter") if last else page.press("Call")
        mirror.call(tool, entries)
        page.same(mirror)
    score = mirror.outcome.trajectory.score
    page.shows(f"not correct, reward {score.value:.3f} of at most 0.900")
    page.check(
        f"the page says not correct, reward {score.value:.3f} for what was right of it", score.value < 0.5
    )
    page.desk.locator(".ecomlab-outcome > details > summary").click()
    page.shot("wrong")


def keys(page: Page, choice: Choice) -> None:
    """Share a key, and have a wrong one refused."""
    say("keys")
    mirror = page.begin(choice)
    key, field = mirror.key, page.field("key of this episode; or paste another's and press Enter")
    field.fill(key[:-2])
    field.press("Enter")
    page.shows("the key's task was")
    page.check("a key that was cut is refused, and says why", True)
    page.begin(PATHS[1])
    field.fill(key)
    field.press("Enter")
    page.same(mirror)
    page.check("a key rebuilds its episode", page.field("environment").input_value() == choice.env)


def dark(page: Page, choice: Choice) -> None:
    """Look at it in the dark theme, with an axis overridden by a key."""
    say("dark theme")
    page.page.evaluate(
        "window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'})"
    )
    page.page.wait_for_function("() => document.body.dataset.jpThemeLight === 'false'", timeout=LONG)
    mirror = Seat()
    mirror.reset(Choice(choice.env, choice.difficulty, choice.seed, {"p_missing": 1.0}, SIZE))
    field = page.field("key of this episode; or paste another's and press Enter")
    field.fill(mirror.key)
    field.press("Enter")
    page.same(mirror)
    page.enter("catalog_search", {"query": "mug", "price_max": "30"}).press("Enter")
    mirror.call("catalog_search", {"query": "mug", "price_max": "30"})
    page.same(mirror)
    page.shot("dark")
    look = "([n]) => [getComputedStyle(n).color, getComputedStyle(n.closest('.jp-OutputArea-output')).backgroundColor]"
    say(
        f"  text and ground: {page.page.evaluate(look, [page.desk.locator('.ecomlab-seat').nth(1).element_handle()])}"
    )


def walk(page: Page, address: str, errors: list[str]) -> None:
    """Everything that is tried, in order."""
    page.open(address)
    for choice in PATHS:
        right(page, choice)
    wrong(page, PATHS[0])
    keys(page, PATHS[0])
    dark(page, PATHS[0])
    page.check(f"no error in the page's scripts: {json.dumps(errors)}", not errors)


def run(chromium: str, out: Path) -> int:
    """Walk through the seat in a browser. Returns the exit code."""
    errors: list[str] = []
    with (
        tempfile.TemporaryDirectory() as scratch,
        lab(Path(scratch)) as address,
        sync_playwright() as playwright,
    ):
        try:
            browser = playwright.chromium.launch(executable_path=chromium, headless=True, args=CHROMIUM)
        except PlaywrightError as error:
            say(f"BROWSER NOT RUN: {chromium} does not start: {str(error).splitlines()[0]}")
            return 0
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        tab.set_default_timeout(LONG)
        tab.on("pageerror", lambda error: errors.append(str(error)))
        page = Page(tab, out)
        try:
            walk(page, address, errors)
        except Exception:
            say(traceback.format_exc())
            tab.screenshot(path=out / "failed.png")
            say(f"BROWSER RUN: failed after {page.checks} checks; see {out / 'failed.png'}")
            return 1
        say(f"BROWSER RUN: {page.checks} checks passed in Chromium {browser.version.partition('.')[0]}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser()
    default = Path(tempfile.gettempdir()) / "ecomlab-browser"
    parser.add_argument("--out", type=Path, default=default, help="folder of the pictures and the log")
    out = parser.parse_args().out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        say("BROWSER NOT RUN: there is no chromium in the path; on Debian: apt-get install chromium")
        return 0
    try:
        return run(chromium, out)
    finally:
        (out / "play.log").write_text("\n".join(SAID) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
