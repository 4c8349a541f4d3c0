"""Open a viewer's page in Chromium and measure it: `python experiments/viewer/browser.py PAGE OUT`.

Runs in an environment of its own (pip install playwright) with the system's Chromium. Writes OUT/browser.json and
screenshots, and ends with exit code 1 where a claim does not hold: no request but the file's own, first paint within
3 s, less than 1 GB, nothing of a hostile text is taken for markup, every step done by keyboard.
"""

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
CHROMIUM = "/usr/bin/chromium"
PAINT_SECONDS, MEMORY_BYTES = 3.0, 1_000_000_000
PICTURE: dict[str, Any] = {"type": "jpeg", "quality": 55}
SMALL = {"width": 1280, "height": 800}


def memory(session: Any) -> int:
    """Add up the proportional memory of all of the browser's processes, in bytes."""
    total = 0
    for process in session.send("SystemInfo.getProcessInfo")["processInfo"]:
        for line in Path(f"/proc/{process['id']}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += 1024 * int(line.split()[1])
    return total


def cpu(session: Any) -> float:
    """Add up the processor time of all of the browser's processes, in seconds: it says more than a clock on a busy
    machine."""
    return sum(process["cpuTime"] for process in session.send("SystemInfo.getProcessInfo")["processInfo"])


def count(page: Page) -> str:
    """Return the line above the table."""
    return page.locator("#count").inner_text()


def seconds_until(page: Page, script: str) -> float:
    """Wait until an expression holds; return how long that took. The page's policy keeps Playwright from waiting in it.

    Raises TimeoutError after five minutes.
    """
    began = time.monotonic()
    while not page.evaluate(script):
        if time.monotonic() - began > 300:
            raise TimeoutError(script)
        time.sleep(0.02)
    return round(time.monotonic() - began, 2)


def walk(page: Page, out: Path, session: Any) -> dict[str, Any]:
    """Go through the page by keyboard, and take down what it takes."""
    found: dict[str, Any] = {}
    paint = "performance.getEntriesByName('first-contentful-paint')"
    seconds_until(page, f"{paint}.length > 0")
    found["first_paint_seconds"] = round(page.evaluate(f"{paint}[0].startTime") / 1000, 2)
    seconds_until(page, "document.readyState === 'complete'")
    found["loaded_seconds"] = round(
        page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd") / 1000, 2
    )
    found["loaded_cpu_seconds"] = round(cpu(session), 2)
    found["memory_opened_bytes"] = memory(session)
    found["table"] = count(page)
    page.screenshot(path=out / "table.jpg", **PICTURE)

    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    found["open_seconds"] = seconds_until(page, "document.querySelectorAll('#panes article').length === 2")
    page.screenshot(path=out / "side_by_side.jpg", **PICTURE)
    page.keyboard.press("j")
    seconds_until(page, "location.hash.startsWith('#2')")
    page.keyboard.press("e")
    seconds_until(page, "[...document.querySelectorAll('#panes details.call')].every((one) => one.open)")
    page.keyboard.press("e")
    page.keyboard.press("Escape")
    seconds_until(page, "!document.getElementById('list').hidden")

    began = cpu(session)
    page.keyboard.press("/")
    page.keyboard.type('"sold out" cart')
    found["first_search_seconds"] = seconds_until(page, "found !== null")
    found["first_search_cpu_seconds"] = round(cpu(session) - began, 2)
    found["searched"] = count(page)
    found["memory_searched_bytes"] = memory(session)
    page.screenshot(path=out / "search.jpg", **PICTURE)
    page.keyboard.press("Enter")  # again, from memory
    page.evaluate("found = null; window.began = performance.now(); search()")
    seconds_until(page, "found !== null")
    found["next_search_seconds"] = round(page.evaluate("(performance.now() - began) / 1000"), 2)

    page.evaluate("document.getElementById('filters').reset()")
    page.locator("#choices label", has_text="env").locator("select").select_option("CART")
    page.locator("#choices label", has_text=re.compile(r"^\s*correct\b")).locator("select").select_option(
        "no"
    )
    found["filtered"] = count(page)
    page.get_by_role("button", name="reward").click()
    found["sorted"] = page.locator("#rows thead th[aria-sort=ascending]").inner_text()
    page.emulate_media(color_scheme="dark")
    page.evaluate("location.hash = '#' + shown.find(({ values }) => values[at.d] === 8).id")
    seconds_until(page, "document.querySelectorAll('#panes article').length === 1")
    page.evaluate("document.querySelectorAll('#panes li.turn')[2].scrollIntoView()")
    page.screenshot(path=out / "dark.jpg", **PICTURE)

    last = page.evaluate("rows.length - 1")
    page.evaluate(f"location.hash = '#{last}'")
    seconds_until(page, "document.querySelector('#panes h2')?.textContent.includes('script')")
    page.keyboard.press("e")
    found["hostile_elements"] = page.locator("#panes img, #panes script").count()
    found["hostile_title"] = page.title()
    found["hostile_formula"] = "$5 and $6" in page.locator("#panes").inner_text()
    page.screenshot(path=out / "hostile.jpg", **PICTURE)
    found["memory_end_bytes"] = memory(session)
    return found


def main() -> int:
    page_file, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    requests: list[str] = []
    errors: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        page = browser.new_page(viewport=SMALL)
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text))
        page.goto(page_file.as_uri(), wait_until="commit")
        found = walk(page, out, browser.new_browser_cdp_session())
        load = round(os.getloadavg()[0], 1)
        found = {
            "chromium": browser.version,
            "cores": os.cpu_count(),
            "load": load,
            "page_bytes": page_file.stat().st_size,
            **found,
        }
        browser.close()
    claims = {
        "only the file itself is asked for": requests == [page_file.as_uri()],
        "no error": not errors,
        f"first paint within {PAINT_SECONDS:.0f} s": found["first_paint_seconds"] <= PAINT_SECONDS,
        "less than 1 GB": max(value for name, value in found.items() if "memory" in name) < MEMORY_BYTES,
        "at most 60 MB": found["page_bytes"] <= 60_000_000,
        "a hostile text stays text": not found["hostile_elements"]
        and found["hostile_title"] == "ecomlab: episodes",
        "a price is no formula": found["hostile_formula"],
    }
    result = {**found, "errors": errors, "claims": claims}
    (out / "browser.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(json.dumps(result, indent=1, ensure_ascii=False))
    return 0 if all(claims.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
