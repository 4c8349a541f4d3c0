"""The built documentation in a real browser: Debian's Chromium under Playwright opens every page from disk.

    make docs && python experiments/browser/docs.py build/docs --out experiments/browser

It counts requests to other hosts, errors of scripts and on the console, links that lead nowhere, pictures that do not
load, and pages that are wider than a phone; docs.json holds what it found. Pictures of some pages are taken light and
dark, wide and narrow, to be looked at.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from PIL import Image
from play import CHROMIUM
from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))

import site_check

WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 800}
SHOWN = (
    "index",
    "episodes/CART",
    "gallery",
    "notebooks/start_01_here",
    "environments",
    "api/ecomlab.episode",
)
"""Pages of which pictures are taken."""


def look(page: Page, address: str) -> dict[str, Any]:
    """Open a page; what it asked of other hosts, what went wrong in it, which pictures did not load, and how much wider
    than a phone it is."""
    asked, wrong = list[str](), list[str]()

    def hear(request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            asked.append(request.url)

    def fail(error: Any) -> None:
        wrong.append(str(error))

    def read(line: Any) -> None:
        if line.type == "error":
            wrong.append(line.text)

    page.on("request", hear)
    page.on("pageerror", fail)
    page.on("console", read)
    page.goto(address, wait_until="load")
    wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    broken = page.evaluate(
        "async () => { for (const i of document.images) i.loading = 'eager';"
        " await Promise.all([...document.images].map(i => i.decode().catch(() => {})));"
        " return [...document.images].filter(i => !i.naturalWidth).map(i => i.src) }"
    )
    for event, listener in (("request", hear), ("pageerror", fail), ("console", read)):
        page.remove_listener(event, listener)
    return {"asked": asked, "errors": wrong, "broken": broken, "wider": wider}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("site", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="folder of docs.json and the pictures")
    chosen = parser.parse_args()
    site, out = chosen.site.resolve(), chosen.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    pages = sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or "chromium", args=CHROMIUM
        )
        narrow = browser.new_page(viewport=NARROW)
        found = {str(path.relative_to(site)): look(narrow, path.as_uri()) for path in pages}
        for scheme in ("light", "dark"):
            for name, size in (("wide", WIDE), ("narrow", NARROW)):
                page = browser.new_page(viewport=size, color_scheme=scheme)
                for shown in (one for one in SHOWN if (site / f"{one}.html").is_file()):
                    page.goto((site / f"{shown}.html").as_uri())
                    path = out / f"docs_{shown.replace('/', '_')}_{scheme}_{name}.png"
                    page.screenshot(path=path)
                    Image.open(path).convert("RGB").save(path.with_suffix(".jpg"), quality=70)
                    path.unlink()
                page.close()
        record = {
            "chromium": browser.version,
            "pages": len(found),
            "requests to other hosts": sorted({url for one in found.values() for url in one["asked"]}),
            "errors of scripts": {name: one["errors"] for name, one in found.items() if one["errors"]},
            "pictures that do not load": {
                name: one["broken"] for name, one in found.items() if one["broken"]
            },
            "links that lead nowhere": site_check.problems(site),
            "looked at": site_check.counted(site),
            "wider than 390 px": {name: one["wider"] for name, one in found.items() if one["wider"] > 0},
        }
    (out / "docs.json").write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    print(json.dumps(record, indent=1))
    return int(any(record[name] for name in record if name not in ("chromium", "pages", "looked at")))


if __name__ == "__main__":
    sys.exit(main())
