"""A hook of mkdocs: the site has README.md as its front page, and every file outside docs/ that a page links to.

Pages keep the links that work in a checkout and on GitHub, such as ``../benchmarks/README.md``; here they become links
of the site. A link that leads nowhere is left as it is, and the strict build refuses it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(\]\()([^)#\s]+)")
FRONT = "README.md"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the front page and, from page to page, what is linked."""
    pages = [ROOT / "docs" / file.src_uri for file in files.documentation_pages()]
    _add(files, config, ROOT / FRONT)
    pages.append(ROOT / FRONT)
    seen = set(pages)
    while pages:
        page = pages.pop()
        if page.suffix != ".md":
            continue
        for target in linked(page):
            if target not in seen:
                seen.add(target)
                pages.append(target)
                _add(files, config, target)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links of the repository into links of the site."""
    source = Path(page.file.abs_src_path) if page.file.abs_src_path else None
    if source is None or not source.is_relative_to(ROOT):
        return markdown

    def moved(found: re.Match[str]) -> str:
        target = _target(source, found[2])
        if target is None:
            return found[0]
        start = PurePosixPath(page.file.src_uri).parent
        return found[1] + PurePosixPath(os.path.relpath(site_path(target), start)).as_posix()

    return LINK.sub(moved, markdown)


def linked(page: Path) -> list[Path]:
    """Files of the repository that a page links to."""
    found = (_target(page, link) for _, link in LINK.findall(page.read_text(encoding="utf-8")))
    return [target for target in found if target is not None]


def site_path(source: Path) -> str:
    """Where a file of the repository stands in the site: README.md in front, docs/ at the top."""
    path = source.relative_to(ROOT).as_posix()
    return "index.md" if path == FRONT else path.removeprefix("docs/")


def _target(page: Path, link: str) -> Path | None:
    """The file behind a relative link; None for an address, and for a link that leads nowhere."""
    target = (page.parent / link).resolve()
    return target if "://" not in link and target.is_file() and target.is_relative_to(ROOT) else None


def _add(files: Files, config: MkDocsConfig, source: Path) -> None:
    if files.get_file_from_path(site_path(source)) is None:
        files.append(File.generated(config, site_path(source), abs_src_path=str(source)))
