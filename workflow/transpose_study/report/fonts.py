"""Where the glyphs of the Chinese edition come from: a pip package, else a font that Debian provides, else nowhere."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "pylopdf-fonts-zh-cn"  # Noto Sans SC and Noto Serif SC, SIL Open Font License
DEBIAN = Path("/usr/share/fonts")


@dataclass(frozen=True)
class Fonts:
    """Two faces, which may be one and the same: their families, and the files that hold them."""

    serif: str
    sans: str
    serif_file: Path
    sans_file: Path
    origin: str

    @property
    def folders(self) -> list[Path]:
        """The folders of the files."""
        return sorted({self.serif_file.parent, self.sans_file.parent})


# (Debian package, serif family and file, sans family and file)
_DEBIAN = (
    (
        "fonts-noto-cjk",
        ("Noto Serif CJK SC", "opentype/noto/NotoSerifCJK-Regular.ttc"),
        ("Noto Sans CJK SC", "opentype/noto/NotoSansCJK-Regular.ttc"),
    ),
    ("fonts-wqy-microhei", *[("WenQuanYi Micro Hei", "truetype/wqy/wqy-microhei.ttc")] * 2),
    ("fonts-wqy-zenhei", *[("WenQuanYi Zen Hei", "truetype/wqy/wqy-zenhei.ttc")] * 2),
    ("fonts-droid-fallback", *[("Droid Sans Fallback", "truetype/droid/DroidSansFallbackFull.ttf")] * 2),
)

MISSING = "no font with Chinese glyphs is installed"
HINT = f"pip install {PACKAGE}, or apt install fonts-wqy-microhei"


def chinese() -> Fonts | None:
    """The first that is there; None where the machine has no font with Chinese glyphs."""
    found = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    if found is not None and found.submodule_search_locations:
        folder = Path(next(iter(found.submodule_search_locations)))
        serif, sans = folder / "NotoSerifSC-Regular.otf", folder / "NotoSansSC-Regular.otf"
        if serif.is_file() and sans.is_file():
            return Fonts("Noto Serif SC", "Noto Sans SC", serif, sans, f"pip package {PACKAGE}")
    for package, (serif_name, serif_file), (sans_name, sans_file) in _DEBIAN:
        if (DEBIAN / serif_file).is_file() and (DEBIAN / sans_file).is_file():
            return Fonts(serif_name, sans_name, DEBIAN / serif_file, DEBIAN / sans_file, f"Debian package {package}")
    return None


def available(code: str) -> bool:
    """Whether figures and PDF can be set in a language."""
    return code != "zh" or chinese() is not None
