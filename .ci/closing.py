"""Print the closing line that pytest left in each log, and last their sum in the same form."""

import re
import sys
from collections import Counter
from pathlib import Path

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
CLOSING = re.compile(r"=+ (.*(?:passed|failed|error|skipped|no tests ran).*) in ([\d.]+)s.*=+")
WIDTH = 80


def main(logs: list[Path]) -> None:
    """A log without a closing line counts as an error: its tests did not run."""
    counts: Counter[str] = Counter()
    seconds = 0.0
    for log in logs:
        text = COLOURS.sub("", log.read_text(encoding="utf-8", errors="replace"))
        found = [match for line in text.splitlines() if (match := CLOSING.fullmatch(line))]
        sys.stdout.write(f"{log.stem}: {found[-1][0] if found else 'no closing line'}\n")
        for number, what in re.findall(r"(\d+) (\w+)", found[-1][1] if found else "1 error"):
            counts[what.removesuffix("s")] += int(number)
        seconds += float(found[-1][2]) if found else 0.0
    told = ", ".join(f"{counts[what]} {what}" for what in sorted(counts)) or "no tests ran"
    sys.stdout.write(f" {told} in {seconds:.2f}s ".center(WIDTH, "=") + "\n")


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
