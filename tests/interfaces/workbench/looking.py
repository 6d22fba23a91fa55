"""What tests of the page ask of it."""

from __future__ import annotations

import re


def fact(page, box, name) -> str:
    """The value beside a name in a list of facts."""
    row = page.locator(f"[data-test={box}] dt", has_text=name).first
    return row.locator("xpath=following-sibling::dd[1]").inner_text()


def metres(text: str) -> float:
    found = re.fullmatch(r"([\d.,]+) (m|km)", text)
    assert found, text
    return float(found[1].replace(",", "")) * (1000 if found[2] == "km" else 1)


def until_drawn(page, least):
    """Wait until a canvas of points shows so many."""
    page.wait_for_function(
        "least => [...document.querySelectorAll('.points-layer')]"
        ".some(one => Number(one.dataset.drawn || 0) >= least)",
        arg=least,
    )


def pixels(page, selector) -> dict[str, float]:
    """Of a picture on the map: how many of its pixels are seen, and their mean colour."""
    return page.evaluate(
        """selector => {
            const image = document.querySelector(selector);
            const canvas = document.createElement("canvas");
            canvas.width = image.naturalWidth; canvas.height = image.naturalHeight;
            const context = canvas.getContext("2d");
            context.drawImage(image, 0, 0);
            const data = context.getImageData(0, 0, canvas.width, canvas.height).data;
            let seen = 0, red = 0, blue = 0;
            for (let i = 0; i < data.length; i += 4) {
                if (data[i + 3] > 20) { seen++; red += data[i]; blue += data[i + 2]; }
            }
            const all = canvas.width * canvas.height;
            return { all, seen, red: red / seen, blue: blue / seen };
        }""",
        selector,
    )


def click_map(page, x=0.5, y=0.5):
    """Click at a share of the map's width and height."""
    box = page.locator(".map").bounding_box()
    page.mouse.click(box["x"] + x * box["width"], box["y"] + y * box["height"])
