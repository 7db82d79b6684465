"""Reports in a real browser: laptop and phone, light and dark. Screenshots are left in the test's temporary folder."""

from __future__ import annotations

import base64
import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.report import write_report
from tests import report_samples

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="needs chromium and chromedriver on the PATH"),
]

FIGURES = {
    "run": ["policy", "tiers", "samples", "values", "undecided"],
    "line": ["policy", "tiers", "samples", "values", "undecided"],
    "table": ["policy", "tiers", "samples", "values", "undecided"],
    "lake": ["policy", "tiers", "samples", "values", "undecided"],
    "audit": ["interval", "distinct", "by-cell", "by-cell-weighted"],
}
SIZES = {"phone": (390, 844), "laptop": (1440, 900)}

MEASURE = """
const shown = (e) => { const r = e.getBoundingClientRect(); return r.width > 0 && r.height > 0; };
const visible = [...document.querySelectorAll('body *')].filter(shown);
const texts = visible.filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()));
const ground = (e) => {
  for (let p = e; p; p = p.parentElement) {
    const c = getComputedStyle(p).backgroundColor;
    if (!c.startsWith('rgba(0, 0, 0, 0') && c !== 'transparent') return c;
  }
  return 'rgb(255, 255, 255)';
};
const head = (e) => e.outerHTML.slice(0, 90);
const overlap = (a, b) => {
  const p = a.getBoundingClientRect(), q = b.getBoundingClientRect();
  const across = Math.min(p.right, q.right) - Math.max(p.left, q.left);
  return across > 1 && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 1;
};
const clashes = [];
const boxes = 'main, .figures, figure, figure > div, .panels, .layer, .legend, .tiles, .top, .card';
for (const box of document.querySelectorAll(boxes)) {
  const parts = [...box.children].filter(shown);
  parts.forEach((a, i) => parts.slice(i + 1).forEach((b) => { if (overlap(a, b)) clashes.push(head(a)); }));
}
for (const e of document.querySelectorAll('.card, .tile, .raster, .legend')) {
  if (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1) clashes.push(head(e));
}
const width = document.documentElement.clientWidth;
const outside = (e) => { const r = e.getBoundingClientRect(); return r.left < -1 || r.right > width + 1; };
const small = (e) => !e.closest('svg') && parseFloat(getComputedStyle(e).fontSize) < 11;
return {
  width,
  scroll: document.documentElement.scrollWidth,
  height: document.documentElement.scrollHeight,
  outside: texts.filter(outside).map(head),
  small: texts.filter(small).map(head),
  clashes,
  figures: [...document.querySelectorAll('[data-figure]')].map((e) => {
    const body = e.lastElementChild.getBoundingClientRect();
    return [e.dataset.figure, body.width, body.height];
  }),
  colours: texts.filter((e) => !e.closest('.raster, svg, .key i'))
    .map((e) => [getComputedStyle(e).color, ground(e), head(e)]),
};
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    grid = reprl.make("gridworld-v0", size=4, horizon=6)
    lake = reprl.make("gym:FrozenLake-v1", horizon=14)
    assert isinstance(lake, reprl.TabularMDP)
    sources: dict[str, Any] = {
        "run": report_samples.run_documents(grid, access="episodic"),
        "line": report_samples.run_documents(reprl.make("river-swim-v0", horizon=8)),
        "table": report_samples.run_documents(reprl.make("queue-admission-v0")),
        "lake": report_samples.run_documents(lake),
        "audit": report_samples.audit_document(grid),
    }
    return {name: write_report(source, folder / f"{name}.html") for name, source in sources.items()}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    profile = tmp_path_factory.mktemp("profile")
    flags = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")
    for flag in (*flags, "--disable-background-networking", f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=DRIVER))
    driver.set_page_load_timeout(60)
    yield driver
    driver.quit()


def visit(browser: Any, page: Path, size: str = "laptop", theme: str = "light") -> None:
    """Open a page as a laptop or a phone would."""
    width, height = SIZES[size]
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == "phone"}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": size == "phone"})
    scheme = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)
    browser.get(page.as_uri())


def screenshot(browser: Any, path: Path, width: int, height: int) -> np.ndarray[Any, Any]:
    from PIL import Image

    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    path.write_bytes(base64.b64decode(shot["data"]))
    return np.asarray(Image.open(io.BytesIO(path.read_bytes())).convert("L"), dtype=np.float64)


def contrast(front: str, back: str) -> float:
    """Contrast of two CSS colours, by the definition of WCAG 2."""

    def luminance(colour: str) -> float:
        parts = [float(part) / 255 for part in colour[colour.index("(") + 1 : -1].replace(",", " ").split()[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

    low, high = sorted((luminance(front), luminance(back)))
    return (high + 0.05) / (low + 0.05)


VIEWS = [
    *((name, size, theme) for name in ("run", "audit") for size in SIZES for theme in ("light", "dark")),
    *((name, "phone", "light") for name in ("line", "table", "lake")),
]


@pytest.mark.parametrize(("name", "size", "theme"), VIEWS)
def test_page_is_whole_and_readable(
    browser: Any, pages: dict[str, Path], name: str, size: str, theme: str, tmp_path: Path
) -> None:
    visit(browser, pages[name], size, theme)
    found = browser.execute_script(MEASURE)
    image = screenshot(browser, tmp_path / f"{name}-{size}-{theme}.png", SIZES[size][0], found["height"])
    assert browser.get_log("browser") == []
    assert found["width"] == SIZES[size][0]
    assert found["scroll"] <= found["width"], "the page must not scroll sideways"
    assert found["outside"] == []
    assert found["small"] == []
    assert found["clashes"] == []
    assert [figure for figure, _, _ in found["figures"]] == FIGURES[name]
    assert all(width > 200 and height > 40 for _, width, height in found["figures"])
    faint = [(text, front, back) for front, back, text in found["colours"] if contrast(front, back) < 4.5]
    assert faint == []
    assert image.std() > 8
    assert (image.mean() < 90) == (theme == "dark")


@pytest.mark.parametrize(
    ("rule", "finding"),
    [
        (".tiles{width:900px}", "outside"),
        (".caption{font-size:9px}", "small"),
        ("figure>div{margin-top:-40px}", "clashes"),
        (".figures>figure{display:block;height:60px}", "clashes"),
    ],
)
def test_a_broken_page_would_be_noticed(browser: Any, pages: dict[str, Path], rule: str, finding: str) -> None:
    visit(browser, pages["audit"], "phone")
    assert browser.execute_script(MEASURE)[finding] == []
    add = "const s = document.createElement('style'); s.textContent = arguments[0]; document.head.append(s)"
    browser.execute_script(add, rule)
    assert browser.execute_script(MEASURE)[finding]


def test_page_requests_nothing_but_itself(browser: Any, pages: dict[str, Path]) -> None:
    browser.get_log("performance")
    visit(browser, pages["run"])
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"}
    assert asked == {pages["run"].as_uri()}


def test_script_of_a_hostile_name_does_not_run(browser: Any, tmp_path: Path) -> None:
    audit = report_samples.audit_document(reprl.make("gridworld-v0", size=4, horizon=6))
    name = "</script><script>document.title='caught'</script><img src=x onerror=\"document.title='caught'\">"
    audit["learner"] = name
    audit["environment"]["labels"]["states"] = [name] * 16
    visit(browser, write_report(audit, tmp_path / "hostile.html"))
    assert browser.title != "caught"
    assert browser.get_log("browser") == []
    assert name in browser.find_element("tag name", "h1").text


def test_pointing_at_a_cell_shows_its_numbers_in_every_map(browser: Any, pages: dict[str, Path]) -> None:
    visit(browser, pages["run"])
    raster = browser.find_element("css selector", "#figure-samples .raster[data-step='0']")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", raster)
    box = raster.rect
    where = browser.execute_script("const r = arguments[0].getBoundingClientRect(); return [r.left, r.top]", raster)
    move = {"type": "mouseMoved", "x": where[0] + box["width"] / 8, "y": where[1] + box["height"] / 8}
    browser.execute_cdp_cmd("Input.dispatchMouseEvent", move)
    tip = browser.find_element("id", "tip").text
    assert tip.startswith("step 0 · 0,0 start")
    assert all(f"\n{name}: " in tip for name in ("action", "tier", "samples", "value"))
    shown = [mark for mark in browser.find_elements("class name", "cursor") if mark.is_displayed()]
    maps = [name for name in FIGURES["run"] if browser.find_elements("css selector", f"#figure-{name} .raster")]
    assert len(shown) == len(maps) >= 4  # where all teams agree, nothing is drawn as undecided


def test_every_cell_of_a_grid_has_its_arrow(browser: Any, pages: dict[str, Path]) -> None:
    visit(browser, pages["run"])
    inside = """
    return [...document.querySelectorAll('#figure-policy .raster')].map((raster) => {
      const box = raster.getBoundingClientRect();
      return [...raster.querySelectorAll('.arrows > use')].map((arrow) => {
        const r = arrow.getBoundingClientRect();
        const place = [(r.top + r.bottom) / 2 - box.top, (r.left + r.right) / 2 - box.left];
        return 4 * Math.floor((4 * place[0]) / box.height) + Math.floor((4 * place[1]) / box.width);
      });
    });
    """
    assert browser.execute_script(inside) == [list(range(16))]  # once: it does the same at every step


def test_slider_moves_every_grid(browser: Any, pages: dict[str, Path]) -> None:
    visit(browser, pages["lake"])
    set_step = "const s = document.getElementById('step'); s.value = 9; s.dispatchEvent(new Event('input'))"
    browser.execute_script(set_step)
    seen = [panel.text for panel in browser.find_elements("css selector", ".panel") if panel.is_displayed()]
    assert seen == ["every step", *["step 9"] * 3]  # the policy does the same at every step, and so do all teams


def test_page_without_script_shows_everything(browser: Any, pages: dict[str, Path]) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        visit(browser, pages["lake"])
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    panels = browser.find_elements("css selector", ".panel")
    assert len(panels) == 1 + 3 * 14  # the policy does the same at every step; the other maps do not
    assert all(panel.is_displayed() for panel in panels)
