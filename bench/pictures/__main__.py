"""`python -m bench.pictures URL FOLDER [--only tour|stills]`: the pictures of the documents.

Start the demo some minutes before (`make demo`): it needs a failed run and a GPU with an alert."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.pictures.stills import take_stills
from bench.pictures.tour import record_tour
from bench.pictures.visit import visit
from bench.support.stack import ROOT
from trainhub.up.demo import PASSWORD

IMAGES = ROOT / "docs" / "images"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="of a demo")
    parser.add_argument("folder", type=Path, help="of that demo (DEMO_DIR), which holds its password")
    parser.add_argument("--only", choices=("tour", "stills"), help="make only these")
    options = parser.parse_args()
    password = (options.folder / PASSWORD.name).read_text().strip()
    with visit(options.url, password) as visitor:
        if options.only != "tour":
            take_stills(visitor, IMAGES)
        if options.only != "stills":
            record_tour(visitor, IMAGES / "tour.webp")


main()
