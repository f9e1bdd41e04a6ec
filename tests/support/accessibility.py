"""Accessibility of a page by axe, in light and dark; the sizes of a desktop and of a phone."""

from axe_playwright_python.sync_playwright import Axe

from benchmarks.studio_driver import Studio

SIZES = {"desktop": (1280, 720), "phone": (390, 844)}


def serious_findings(studio: Studio, view: str) -> list[str]:
    """Findings of axe that are serious or critical, in light and in dark."""
    findings = []
    for scheme in ("light", "dark"):
        studio.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        findings += [
            f"{view}, {scheme}: {each['id']} at {[node['html'][:120] for node in each['nodes'][:3]]}"
            for each in Axe().run(studio.page).response["violations"]
            if each["impact"] in ("serious", "critical")
        ]
    return findings
