"""What holds of the built site as a whole: every link inside it leads somewhere, and no page asks another host for
anything. `experiments/browser/docs.py` looks at the same site in a browser.

    python docs/site_check.py build/docs
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}
"""Elements whose address a browser asks for as it opens the page."""


class Page(HTMLParser):
    """The addresses of a page: its links, what it loads, and the names within it to which others may link."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.names: set[str] = {""}
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attributes if value}
        self.names |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif (address := given.get(LOADED.get(tag, ""))) and not address.startswith("data:"):
            self.loaded.append(address)


def read(site: Path) -> dict[Path, Page]:
    """Read every page of a built site."""
    return {
        path: Page(path) for path in sorted(site.resolve().rglob("*.html")) if "_static" not in path.parts
    }


def problems(site: Path) -> list[str]:
    """Name dead links, and addresses of other hosts that a browser would ask."""
    pages, found = read(site), []
    for path, page in pages.items():
        where = path.relative_to(site.resolve())
        for address in page.loaded:
            if _elsewhere(address):
                found.append(f"{where}: asks another host: {address}")
        for address in (*page.links, *page.loaded):
            if not _elsewhere(address) and (why := _dead(path, address, pages)):
                found.append(f"{where}: {why}: {address}")
    return found


def counted(site: Path) -> str:
    """Say what was looked at."""
    pages = read(site)
    inside = sum(not _elsewhere(link) for page in pages.values() for link in page.links)
    return f"{len(pages)} pages, {inside:,} links within the site"


def _elsewhere(address: str) -> bool:
    parts = urlsplit(address)
    return bool(parts.scheme or parts.netloc)


def _dead(page: Path, address: str, pages: dict[Path, Page]) -> str:
    """Say why a link leads nowhere; "" if it does not."""
    parts = urlsplit(address)
    path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not path.is_file():
        return "no such file"
    if path in pages and unquote(parts.fragment) not in pages[path].names:
        return "no such place in the page"
    return ""


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]))
    print("\n".join([*wrong, counted(Path(sys.argv[1]))]))
    sys.exit(bool(wrong))
